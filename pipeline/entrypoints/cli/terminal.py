"""Words on a terminal. What a document says can neither move the cursor nor change how the line is read."""

from __future__ import annotations

import json
import sys
import textwrap
from typing import Any

from pipeline.stages.clean import clean_text

_LEFT_TO_RIGHT_MARKS = dict.fromkeys(map(ord, "\u200e\u200f\u061c"))


def text(value: object) -> str:
    """Without controls (escape sequences among them) and marks that reorder text; line ends and tabs stay."""
    return clean_text(str(value)).translate(_LEFT_TO_RIGHT_MARKS)


def line(value: object) -> str:
    """As :func:`text`, on one line."""
    return " ".join(text(value).split())


def sendable(value: str) -> str:
    """What was typed, as UTF-8 can carry it: bytes of another encoding become replacement characters."""
    return value.encode("utf-8", "replace").decode()


def say(*parts: str) -> None:
    """One line of the answer, on stdout."""
    print(*parts)


def tell(message: str) -> None:
    """One line beside the answer, on stderr."""
    print(message, file=sys.stderr, flush=True)


def document(value: Any) -> None:
    """The one JSON document of ``--json``: ASCII, so that no character of it can act on a terminal."""
    print(json.dumps(value, indent=2))


def excerpt(value: str, width: int, indent: str, most_chars: int) -> str:
    """The beginning of a passage as an indented paragraph."""
    return textwrap.fill(
        textwrap.shorten(line(value), most_chars, placeholder=" …"),
        max(width, len(indent) + 20),
        initial_indent=indent,
        subsequent_indent=indent,
    )


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
