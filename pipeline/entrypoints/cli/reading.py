"""``docmill read``, ``status`` and ``list``."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter

from pipeline.entrypoints.cli import client, connection, terminal
from pipeline.entrypoints.cli.client import Gateway
from pipeline.entrypoints.cli.outcome import Exit
from pipeline.types import Block
from renderers import markdown

_BLOCKS = TypeAdapter(tuple[Block, ...])
_FINAL = frozenset({"ready", "failed", "cancelled"})
_MOST_PAGES_NAMED = 20


def run(given: argparse.Namespace) -> int:
    commands: dict[str, Callable[[Gateway, argparse.Namespace], int]] = {
        "read": _read,
        "status": _status,
        "list": _list,
    }
    with Gateway(connection.find(given.data)) as gateway:
        return commands[given.command](gateway, given)


# --- read -----------------------------------------------------------------------------------


def _read(gateway: Gateway, given: argparse.Namespace) -> int:
    path = client.source(given.id, "/document")
    window = gateway.get(path, from_block=given.from_block)
    if given.pages is not None:
        window = _only_pages(gateway, path, window, *given.pages)
    if given.json:
        terminal.document(window)
    else:
        _show_window(window, given)
    return Exit.DONE if window["blocks"] else Exit.NOTHING_FOUND


def _only_pages(gateway: Gateway, path: str, window: Any, first: int, last: int) -> Any:
    """The blocks of these pages as one window; windows are read until a later page begins."""
    whole, kept = window, []
    while True:
        blocks = _BLOCKS.validate_python(window["blocks"])
        kept += [block for block in blocks if block.page is not None and first <= block.page <= last]
        beyond = any(block.page is not None and block.page > last for block in blocks)
        if beyond or window["next_block"] is None:
            break
        window = gateway.get(path, from_block=window["next_block"])
    return {
        **whole,
        "blocks": _BLOCKS.dump_python(tuple(kept), mode="json"),
        "markdown": markdown.render(kept),
        "next_block": None,
        "reason": whole["reason"] or (None if kept else "no text on these pages"),
    }


def _show_window(window: Any, given: argparse.Namespace) -> None:
    if window["blocks"]:
        terminal.say(terminal.text(window["markdown"]).rstrip("\n"))
    else:
        terminal.tell(f"docmill: nothing to read: {terminal.line(window['reason'] or 'there is no such block')}")
    for warning in window["warnings"]:
        terminal.tell(f"docmill: note: {terminal.line(warning)}")
    if window["low_confidence"]:
        terminal.tell("docmill: note: parts of this document were recognised with low confidence")
    if window["next_block"] is not None:
        terminal.tell(f"docmill: more: docmill read {given.id} --from-block {window['next_block']}")


# --- status and list ------------------------------------------------------------------------


def _status(gateway: Gateway, given: argparse.Namespace) -> int:
    if given.id is None:
        return _overview(gateway, given)
    source = gateway.get(client.source(given.id))
    if given.json:
        terminal.document(source)
        return Exit.DONE
    for name, value in _facts(source):
        terminal.say(f"{name:<12}{terminal.line(value)}")
    pages = list(gateway.items(client.source(given.id, "/pages")))
    if pages:
        terminal.say(f"{'pages':<12}{_page_map(pages)}")
    return Exit.DONE


def _facts(source: Any) -> list[tuple[str, str]]:
    facts = [("title", source["title"]), ("status", source["status"])]
    latest = source["latest"]
    if latest["status"] in ("queued", "ingesting"):
        if source["queue"] is not None:
            facts.append(("waiting", f"place {source['queue']['position']} in the queue"))
        else:
            facts.append(("stage", progress(source)))
    if source["failure"] is not None:
        failure = source["failure"]
        facts += [("failed", f"{failure['code']}: {failure['detail']}"), ("remedy", failure["remedy"])]
    facts += [
        ("type", source["media_type"]),
        ("subject", source["subject"]),
        ("chunks", str(source["chunks"])),
        ("file", source["file_id"] or "none"),
        ("id", source["id"]),
    ]
    return facts


def progress(source: Any) -> str:
    """The stage a source stands at and how far it is, in words."""
    stage, done, total = source["stage"] or "waiting", source["progress"]["done"], source["progress"]["total"]
    return f"{stage}, {done} of {terminal.counted(total, unit(stage))}" if total else str(stage)


def unit(stage: str | None) -> str:
    """What a stage counts."""
    return "page" if stage in ("register", "extract", "ocr") else "chunk"


def _page_map(pages: list[Any]) -> str:
    methods = Counter(page["method"] for page in pages)
    told = [f"{len(pages)} ({', '.join(f'{number} {method}' for method, number in sorted(methods.items()))})"]
    odd = [page for page in pages if page["warning"] or page["method"] == "skipped"]
    told += [f"page {page['page']}: {page['warning'] or 'skipped'}" for page in odd[:_MOST_PAGES_NAMED]]
    unsure = [page["confidence"] for page in pages if page["confidence"] is not None]
    if unsure:
        told.append(f"least confidence {min(unsure):.2f}")
    return "; ".join(told)


def _overview(gateway: Gateway, given: argparse.Namespace) -> int:
    sources = list(gateway.items("/v1/sources"))
    if given.json:
        terminal.document({"items": sources, "next_cursor": None})
        return Exit.DONE
    counts = Counter(source["status"] for source in sources)
    terminal.say(", ".join(f"{number} {status}" for status, number in sorted(counts.items())) or "no documents")
    for source in sources:
        if source["status"] not in _FINAL or source["failure"] is not None:
            why = source["failure"]["code"] if source["failure"] else progress(source)
            terminal.say(f"  {source['id']}  {terminal.line(source['title'])}: {why}")
    return Exit.DONE


def _list(gateway: Gateway, given: argparse.Namespace) -> int:
    sources = list(gateway.items("/v1/sources"))
    if given.json:
        terminal.document({"items": sources, "next_cursor": None})
        return Exit.DONE
    for source in sources:
        counts = f"{source['pages']:>5} pages {source['chunks']:>6} chunks"
        terminal.say(f"{source['id']}  {source['status']:<9} {counts}  {terminal.line(source['title'])}")
    if not sources:
        terminal.tell("docmill: no documents yet; add some with: docmill ingest PATH")
    return Exit.DONE
