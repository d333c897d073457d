"""What the commands take. Light on purpose: ``docmill --help`` loads nothing else."""

from __future__ import annotations

import argparse
import re
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from pipeline.entrypoints.cli.outcome import Exit

_DESCRIPTION = "Documents in, cited answers out."
_EPILOG = """\
first steps:
  docmill up                          start everything on this machine (keep it running)
  docmill ingest report.pdf notes/ --recursive
  docmill search "what does the warranty cover"

environment:
  DOCMILL_URL, DOCMILL_TOKEN          a gateway elsewhere; else the running embedded stack is used
  DOCMILL_DATA                        where the embedded stack keeps its data (~/.local/share/docmill)

exit codes:
  0 done, 1 error, 2 usage, 3 some documents failed, 4 nothing found, 5 gateway not reachable
"""
_MOST_HITS = 50
_MOST_PORT = 65_535
_MONTH_S = 30 * 24 * 3600


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, f"{self.prog}: {message}; see {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """The whole command line; ``module`` of the result names what carries the command out."""
    root = Parser(
        prog="docmill",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"docmill {metadata.version('docmill')}")
    commands = root.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_up(commands)
    _add_ingest(commands)
    _add_search(commands)
    _add_read(commands)
    _add_status(commands)
    _add_list(commands)
    _add_delete(commands)
    _add_token(commands)
    _command(
        commands, "migrate", "operations", "bring the database to this version's schema (DOCMILL_DATABASE_URL_MIGRATOR)"
    )
    _command(commands, "version", "version", "print the version")
    return root


_Commands = argparse._SubParsersAction  # the type argparse gives no public name


def _command(commands: _Commands[Parser], name: str, module: str, summary: str) -> argparse.ArgumentParser:
    command = commands.add_parser(
        name, help=summary, description=summary[:1].upper() + summary[1:] + ".", allow_abbrev=False
    )
    command.set_defaults(command=name, module=module)
    return command


def _client(command: argparse.ArgumentParser) -> None:
    command.add_argument("--data", type=Path, metavar="DIR", help="use the stack whose data are in DIR")
    command.add_argument("--json", action="store_true", help="print one JSON document and nothing else")


def _add_up(commands: _Commands[Parser]) -> None:
    up = _command(commands, "up", "operations", "start the embedded stack and keep it running until Ctrl-C")
    up.add_argument(
        "--data", type=Path, metavar="DIR", help="where everything is kept (default ~/.local/share/docmill)"
    )
    up.add_argument("--host", default="127.0.0.1", help="address the gateway listens on (default %(default)s)")
    up.add_argument("--port", type=_port, help="port of the gateway (default 8000, or a free one)")
    up.add_argument("--workers", type=_positive, default=2, help="worker processes (default %(default)s)")
    up.add_argument("--no-flower", action="store_true", help="do not start Flower, the view of the queues")
    up.add_argument("--ready-file", type=Path, metavar="F", help="touch this file once everything is ready")


def _add_ingest(commands: _Commands[Parser]) -> None:
    ingest = _command(commands, "ingest", "ingest", "add documents and follow them until they can be searched")
    ingest.add_argument("paths", nargs="+", metavar="PATH", help="a file, or with --recursive a directory")
    ingest.add_argument("--subject", help="whom the documents belong to (default: you alone)")
    ingest.add_argument("--recursive", action="store_true", help="take every file below the directories named")
    ingest.add_argument("--no-wait", action="store_true", help="upload only; docmill status shows what becomes of it")
    _client(ingest)


def _add_search(commands: _Commands[Parser]) -> None:
    search = _command(commands, "search", "search", "search, and print cited passages")
    search.add_argument("query", metavar="QUERY", help="a question or words")
    search.add_argument("--limit", type=_hits, default=10, metavar="N", help="at most N passages (default %(default)s)")
    search.add_argument("--mode", choices=("hybrid", "vector", "keyword"), default="hybrid", help="default %(default)s")
    search.add_argument("--source", action="append", metavar="ID", help="only in this source; may be repeated")
    _client(search)


def _add_read(commands: _Commands[Parser]) -> None:
    read = _command(commands, "read", "reading", "print a document as Markdown, a window at a time")
    read.add_argument("id", metavar="ID", help="id of the source")
    read.add_argument("--from-block", type=_ordinal, default=0, metavar="N", help="begin at block N (default 0)")
    read.add_argument("--pages", type=_pages, metavar="A-B", help="only these pages, all of them")
    _client(read)


def _add_status(commands: _Commands[Parser]) -> None:
    status = _command(commands, "status", "reading", "show what becomes of a document, or what is not ready")
    status.add_argument("id", nargs="?", metavar="ID", help="id of the source (default: all)")
    _client(status)


def _add_list(commands: _Commands[Parser]) -> None:
    _client(_command(commands, "list", "reading", "list the documents you may read"))


def _add_delete(commands: _Commands[Parser]) -> None:
    delete = _command(commands, "delete", "deletion", "delete a document and its file, and prove it")
    delete.add_argument("id", metavar="ID", help="id of the source")
    delete.add_argument("--keep-file", action="store_true", help="keep the uploaded file")
    delete.add_argument("--no-wait", action="store_true", help="do not wait for the receipt")
    _client(delete)


def _add_token(commands: _Commands[Parser]) -> None:
    token = _command(commands, "token", "tokens", "print a signed token, for development only")
    token.add_argument(
        "--tenant", default="dev", metavar="T", help="name of the tenant, made on first use (default %(default)s)"
    )
    token.add_argument("--user", default="dev", metavar="U", help="whose token it is (default %(default)s)")
    token.add_argument(
        "--subject", action="append", default=[], metavar="S", help="make the user a member of S; may be repeated"
    )
    token.add_argument("--scope", action="append", default=[], metavar="S", help="grant scope S; may be repeated")
    token.add_argument(
        "--ttl", type=_positive, default=_MONTH_S, metavar="SECONDS", help="how long it is valid (default 30 days)"
    )
    token.add_argument("--data", type=Path, metavar="DIR", help="sign for the stack whose data are in DIR")


# --- values ---------------------------------------------------------------------------------


def _number(value: str, least: int, most: int | None, what: str) -> int:
    if value.isascii() and value.isdecimal() and len(value) <= 10:
        number = int(value)
        if number >= least and (most is None or number <= most):
            return number
    raise argparse.ArgumentTypeError(f"{value!r} is not {what}")


def _positive(value: str) -> int:
    return _number(value, 1, None, "a whole number from 1")


def _ordinal(value: str) -> int:
    return _number(value, 0, None, "a whole number from 0")


def _port(value: str) -> int:
    return _number(value, 1, _MOST_PORT, "a port")


def _hits(value: str) -> int:
    return _number(value, 1, _MOST_HITS, f"a number from 1 to {_MOST_HITS}")


def _pages(value: str) -> tuple[int, int]:
    """``A-B`` or ``A``; pages count from 1."""
    found = re.fullmatch(r"([1-9][0-9]{0,5})(?:-([1-9][0-9]{0,5}))?", value)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise argparse.ArgumentTypeError(f"{value!r} are not pages; write them as 3-7 or 3")
    return int(found[1]), int(found[2] or found[1])
