"""The document pass: what the windows read, put together into one document's blocks and page map."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.errors import Failure, FailureCode
from pipeline.stages.layout import lay_out
from pipeline.stages.layout_rows import Row, rows_of
from pipeline.stages.slices import sliced
from pipeline.types import Block, BlockKind, ExtractedDocument, Line, WindowText

# Titles that programs write by themselves.
_NO_TITLE = re.compile(
    r"(?i)untitled.*|microsoft (word|powerpoint|excel)\b.*|.*\.(docx?|pptx?|xlsx?|pdf|indd|qxd|tex)|\W*"
)
_MAX_TITLE_CHARS = 200
# A heading is the document's title only among its first blocks of text.
_OPENING_BLOCKS, _TITLE_WITHIN = 40, 4
_FURNITURE = frozenset({BlockKind.HEADER, BlockKind.FOOTER})


@dataclass(frozen=True, slots=True)
class ExtractLimits:
    """MAX_BLOCKS, MAX_TEXT_BYTES (UTF-8; the only one that truncates) and MAX_CELLS of the contract."""

    max_blocks: int
    max_text_bytes: int
    max_cells: int


def assemble(windows: Sequence[WindowText], limits: ExtractLimits) -> ExtractedDocument | Failure:
    """All windows of a document, in order, as blocks in reading order.

    ``malformed`` when not one of its pages could be read; ``too-large`` when there are more blocks or table cells than
    the limits allow, naming number and limit. Text beyond ``max_text_bytes`` is cut off before the block that would
    exceed it, with ``truncated`` and a warning. A document without text comes out without blocks: whether that is a
    failure is for later stages to say.
    """
    pages = tuple(page for window in windows for page in window.pages)
    if pages and all(page.width <= 0 or page.height <= 0 for page in pages):
        return Failure(FailureCode.MALFORMED, "None of the document's pages can be read.")
    cells = sum(len(block.table.cells) for window in windows for block in _given(window) if block.table is not None)
    if cells > limits.max_cells:
        return _too_large(cells, "table cells", limits.max_cells)
    blocks: list[Block] = []
    for block in _blocks(windows):
        blocks.extend(sliced(block))
        if len(blocks) > limits.max_blocks:
            return _too_large(len(blocks), "blocks or more", limits.max_blocks)
    kept = _within(blocks, limits.max_text_bytes)
    warnings = [warning for window in windows for warning in window.warnings]
    if len(kept) < len(blocks):
        warnings.append(f"Only the first {limits.max_text_bytes:,} bytes of text were kept; the document has more.")
    return ExtractedDocument(
        blocks=tuple(kept),
        pages=pages,
        title=_title(windows, kept),
        warnings=tuple(dict.fromkeys(warnings)),
        truncated=len(kept) < len(blocks),
    )


def _given(window: WindowText) -> Iterator[Block]:
    yield from window.tables
    yield from window.blocks


def _too_large(number: int, what: str, limit: int) -> Failure:
    return Failure(FailureCode.TOO_LARGE, f"The document has {number:,} {what}; the limit is {limit:,}.")


def _blocks(windows: Sequence[WindowText]) -> Iterator[Block]:
    """Blocks that came finished, in their place, and blocks made of lines."""
    lines = any(window.lines or window.tables for window in windows)
    if lines:
        yield from _laid_out(windows)
    for window in windows:
        yield from window.blocks


def _laid_out(windows: Sequence[WindowText]) -> Iterator[Block]:
    pages = {page.page: page for window in windows for page in window.pages}
    rows: list[Row] = []
    # A table stands before the row whose position this is; tables of one place keep their order.
    tables: list[tuple[int, Block]] = []
    for window in windows:
        by_page: defaultdict[int, list[Line]] = defaultdict(list)
        for line in window.lines:
            by_page[line.page].append(line)
        for page, lines in by_page.items():
            start = len(rows)
            rows += rows_of(pages[page], [line for line in lines if line.table is None])
            for table, order in _tables_on(lines):
                place = next((at for at in range(start, len(rows)) if rows[at].first.order > order), len(rows))
                tables.append((place, window.tables[table]))
    laid = lay_out(rows, pages)
    yield from _merged(laid, tables)


def _tables_on(lines: Iterable[Line]) -> Iterator[tuple[int, int]]:
    """Each table of a page with the place of its first line in the content stream."""
    seen: dict[int, int] = {}
    for line in lines:
        if line.table is not None:
            seen[line.table] = min(line.order, seen.get(line.table, line.order))
    yield from sorted(seen.items(), key=lambda item: item[1])


def _merged(laid: Sequence[tuple[int, Block]], tables: Sequence[tuple[int, Block]]) -> Iterator[Block]:
    waiting = sorted(tables, key=lambda item: item[0])
    position = 0
    for place, block in laid:
        while position < len(waiting) and waiting[position][0] <= place:
            yield waiting[position][1]
            position += 1
        yield block
    for _, block in waiting[position:]:
        yield block


def _within(blocks: Sequence[Block], max_bytes: int) -> Sequence[Block]:
    used = 0
    for position, block in enumerate(blocks):
        used += len(block.text.encode())
        if block.table is not None:
            used += sum(len(cell.text.encode()) for cell in block.table.cells)
        if used > max_bytes:
            return blocks[:position]
    return blocks


def _title(windows: Sequence[WindowText], blocks: Sequence[Block]) -> str | None:
    """What the document calls itself, else the highest of the headings it opens with."""
    for window in windows:
        if window.title and not _NO_TITLE.fullmatch(window.title):
            return window.title
    body = [block for block in blocks[:_OPENING_BLOCKS] if block.kind not in _FURNITURE and not block.hidden]
    headings = [block for block in body[:_TITLE_WITHIN] if block.kind is BlockKind.HEADING]
    return min(headings, key=lambda block: block.level).text[:_MAX_TITLE_CHARS] if headings else None
