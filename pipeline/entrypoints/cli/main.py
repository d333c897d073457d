"""``docmill``: reads the command line, carries one command out, ends with its code."""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Sequence

from pipeline.entrypoints.cli import arguments, terminal
from pipeline.entrypoints.cli.outcome import CommandError, Exit
from pipeline.errors import ConfigurationError, TransientError


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code. Usage errors and ``--help`` end by SystemExit, as argparse does."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal without a character shows another; it is no reason to fail.
            stream.reconfigure(errors="replace")
    given = arguments.parser().parse_args(argv)
    try:
        code = int(importlib.import_module(f"pipeline.entrypoints.cli.{given.module}").run(given))
        sys.stdout.flush()
        return code
    except CommandError as problem:
        return _ended(str(problem), problem.code)
    except ConfigurationError as problem:
        return _ended(str(problem), Exit.ERROR)
    except TransientError as problem:
        return _ended(f"{problem.dependency} does not answer ({problem.detail}); is it running?", Exit.NOT_REACHABLE)
    except KeyboardInterrupt:
        return _ended("interrupted", Exit.INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain once more when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE


def _ended(message: str, code: Exit) -> int:
    terminal.tell(f"docmill: {terminal.line(message)}")
    return code


if __name__ == "__main__":
    sys.exit(main())
