"""``docmill search``."""

from __future__ import annotations

import argparse
import shutil
from typing import Any

from pipeline.entrypoints.cli import connection, terminal
from pipeline.entrypoints.cli.client import Gateway
from pipeline.entrypoints.cli.outcome import Exit

_EXCERPT_CHARS = 400
_INDENT = "   "


def run(given: argparse.Namespace) -> int:
    question: dict[str, Any] = {"query": terminal.sendable(given.query), "limit": given.limit, "mode": given.mode}
    if given.source:
        question["filters"] = {"source_id": list(map(terminal.sendable, given.source))}
    with Gateway(connection.find(given.data)) as gateway:
        answer = gateway.post("/v1/search", question)
    if given.json:
        terminal.document(answer)
    elif answer["outcome"] == "found":
        _show(answer)
    else:
        terminal.tell(f"docmill: nothing found ({answer['reason']}): {answer['message']}")
    return Exit.DONE if answer["outcome"] == "found" else Exit.NOTHING_FOUND


def _show(answer: Any) -> None:
    width = min(shutil.get_terminal_size().columns, 100)
    for number, hit in enumerate(answer["hits"], 1):
        facts = [terminal.line(hit["title"]), place(hit["location"]), f"score {hit['score']:.2f}"]
        if hit["extraction"]["low_confidence"]:
            facts.append("low confidence")
        terminal.say(f"{number}. " + " · ".join(fact for fact in facts if fact))
        if hit["heading_path"]:
            terminal.say(_INDENT + terminal.line(" > ".join(hit["heading_path"])))
        terminal.say(terminal.excerpt(hit["excerpt"], width, _INDENT, _EXCERPT_CHARS))
        terminal.say(f"{_INDENT}source {hit['source_id']}\n")
    if answer["under_filled"]:
        terminal.tell("docmill: the filters left fewer passages than were asked for")


def place(location: Any) -> str:
    """Where a passage stands, in words: pages, slide, or sheet and cells."""
    pages = location["pages"]
    if pages:
        return f"page {pages[0]}" if len(pages) == 1 else f"pages {pages[0]}-{pages[-1]}"
    if location["slide"] is not None:
        return f"slide {location['slide']}"
    if location["sheet"]:
        return terminal.line(f"{location['sheet']} {location['cells'] or ''}")
    return ""
