"""Where a chunk stands in its document, and how its text was had."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.types import Block, Box, Location, PageMethod, Table

_RANGE = re.compile(r"\$?([A-Z]{1,3})\$?(\d{1,7}):\$?([A-Z]{1,3})\$?(\d{1,7})")


def location_of(blocks: Sequence[Block], cells: str | None = None) -> Location:
    """The union of the blocks' places: pages, one box a block and page, slide and sheet of the first that has one.

    ``cells`` is the range a piece of a table covers; without it the first block's range counts.
    """
    boxes = [box for block in blocks for box in _boxes_by_page(block.boxes)]
    pages = {block.page for block in blocks if block.page is not None} | {box.page for box in boxes}
    return Location(
        pages=tuple(sorted(pages)),
        boxes=tuple(dict.fromkeys(boxes)),
        slide=next((block.slide for block in blocks if block.slide is not None), None),
        sheet=next((block.sheet for block in blocks if block.sheet is not None), None),
        cells=cells or next((block.cells for block in blocks if block.cells is not None), None),
    )


def method_of(blocks: Sequence[Block]) -> PageMethod:
    """The method all blocks share, else ``mixed``."""
    methods = {block.method for block in blocks}
    return methods.pop() if len(methods) == 1 else PageMethod.MIXED


def confidence_of(blocks: Sequence[Block]) -> float | None:
    """Mean confidence of the recognised blocks, weighted by length; None when all text was read."""
    recognised = [(block.confidence, max(1, len(block.text))) for block in blocks if block.confidence is not None]
    if not recognised:
        return None
    return sum(confidence * length for confidence, length in recognised) / sum(length for _, length in recognised)


def language_of(blocks: Sequence[Block]) -> str | None:
    """The language of the blocks that name one, if it is the same."""
    languages = {block.language for block in blocks if block.language}
    return languages.pop() if len(languages) == 1 else None


def rows_range(table_range: str | None, table: Table, first_row: int, last_row: int) -> str | None:
    """The sheet range of some rows of a table, when its own range has a sheet row for each of its rows."""
    match = _RANGE.fullmatch(table_range or "")
    if match is None or int(match[4]) - int(match[2]) + 1 != table.rows:
        return table_range
    return f"{match[1]}{int(match[2]) + first_row}:{match[3]}{int(match[2]) + last_row}"


def _boxes_by_page(boxes: Sequence[Box]) -> list[Box]:
    """One box for each page, around all boxes on it."""
    around: dict[int, Box] = {}
    for box in boxes:
        seen = around.get(box.page, box)
        around[box.page] = Box(
            box.page, min(seen.x0, box.x0), min(seen.y0, box.y0), max(seen.x1, box.x1), max(seen.y1, box.y1)
        )
    return [around[page] for page in sorted(around)]
