"""Blocks as Markdown that reads back as the same blocks: CommonMark with GitHub's tables."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from pipeline.types import Block, BlockKind, Cell, Table
from renderers import escaping

_LEFT_OUT = frozenset({BlockKind.HEADER, BlockKind.FOOTER})
_NUMBERED = re.compile(r"\d{1,9}[.)]")
# What stands before a list item for no more reason than that it is one.
_BULLETS = frozenset("-*+•◦▪▫●○■□‣⁃–—·")


def render(blocks: Sequence[Block]) -> str:
    """The document as Markdown, without headers, footers and hidden text; ends with a line end unless empty.

    A table with spans is an HTML table, since pipes have none; a vision model's description is a labelled quotation.
    """
    parts: list[str] = []
    depth = _Depth()
    listed = False
    for block in blocks:
        if block.hidden or block.kind in _LEFT_OUT:
            continue
        text = depth.item(block) if block.kind is BlockKind.LIST_ITEM else _block(block)
        if not text:
            continue
        item = block.kind is BlockKind.LIST_ITEM
        if not item:
            depth = _Depth()
        if parts:
            parts.append("\n" if listed and item else "\n\n")
        parts.append(text)
        listed = item
    return "".join(parts) + "\n" if parts else ""


def table_rows(table: Table) -> list[str]:
    """The table as lines of GitHub's Markdown, without regard to spans; the first row is the header."""
    rows = [[""] * table.columns for _ in range(table.rows)]
    for cell in table.cells:
        if cell.row < table.rows and cell.column < table.columns:
            rows[cell.row][cell.column] = _pipe_cell(cell.text)
    rendered = ["| " + " | ".join(row) + " |" for row in rows]
    return [rendered[0], "|" + " --- |" * table.columns, *rendered[1:]] if rendered and table.columns else []


def _block(block: Block) -> str:
    if block.kind is BlockKind.HEADING:
        return _heading(block)
    if block.kind is BlockKind.CODE:
        return _code(block.text)
    if block.table is not None:
        return _table(block.table)
    lines = escaping.lines(block.text)
    if block.kind is BlockKind.DESCRIPTION and lines:
        return "\n".join(f"> {line}" for line in ["Description of an image:", *lines])
    return "\n".join(lines)


def _heading(block: Block) -> str:
    text = escaping.inline(" ".join(block.text.split()))
    # Signs at the end would be taken for the closing of the heading.
    text = re.sub(r"(?<=\s)(#+)$|^(#+)$", r"\\\g<0>", text)
    return f"{'#' * min(max(block.level, 1), 6)} {text}" if text else ""


def _code(text: str) -> str:
    body = text.strip("\n")
    longest = max(map(len, re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{body}\n{fence}" if body.strip() else ""


class _Depth:
    """The columns at which the text of the list items above begins: a nested item begins at its parent's text."""

    def __init__(self) -> None:
        self._columns: list[tuple[int, int]] = []

    def item(self, block: Block) -> str:
        """A list item at its depth. A marker Markdown does not know (``a)``, ``(iv)``) is kept as text."""
        marker = (block.marker or "").strip()
        known = marker in _BULLETS or _NUMBERED.fullmatch(marker) is not None
        lines = escaping.lines(block.text if known or not marker else f"{marker} {block.text.strip()}")
        if not lines:
            return ""
        while self._columns and self._columns[-1][0] >= block.level:
            self._columns.pop()
        column = self._columns[-1][1] if self._columns else 0
        shown = marker if _NUMBERED.fullmatch(marker) else "-"
        inside = column + len(shown) + 1
        self._columns.append((block.level, inside))
        # Only number 1 may begin a list right below text; any other needs an empty line.
        gap = "\n" if column and shown != "-" else ""
        return gap + "\n".join([" " * column + f"{shown} {lines[0]}", *(" " * inside + line for line in lines[1:])])


def _table(table: Table) -> str:
    spans = any(cell.row_span > 1 or cell.column_span > 1 for cell in table.cells)
    rows = list(_html_rows(table)) if spans else table_rows(table)
    if not rows or not any(cell.text.strip() for cell in table.cells):
        return ""
    part = [f"(part {table.part} of {table.parts})\n"] if table.parts > 1 else []
    return "\n".join([*part, *(["<table>", *rows, "</table>"] if spans else rows)])


def _html_rows(table: Table) -> Iterator[str]:
    by_row: dict[int, list[Cell]] = {}
    for cell in sorted(table.cells, key=lambda cell: (cell.row, cell.column)):
        by_row.setdefault(cell.row, []).append(cell)
    for row in range(table.rows):
        yield "<tr>" + "".join(map(_html_cell, by_row.get(row, ()))) + "</tr>"


def _html_cell(cell: Cell) -> str:
    tag = "th" if cell.header else "td"
    spans = "".join(
        f' {name}="{span}"' for name, span in (("rowspan", cell.row_span), ("colspan", cell.column_span)) if span > 1
    )
    text = "<br>".join(html.escape(line.strip(), quote=False) for line in cell.text.strip().split("\n"))
    return f"<{tag}{spans}>{text}</{tag}>"


def _pipe_cell(text: str) -> str:
    lines = (escaping.inline(" ".join(line.split())) for line in text.strip().split("\n"))
    return "<br>".join(lines).replace("|", "\\|")
