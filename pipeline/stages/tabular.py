"""Tables among the lines of a window: where to look for them, and which of those found may replace lines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from pipeline.stages.layout_rows import rows_of
from pipeline.types import Block, Line, Page, PageMethod, Table, WindowText

# Rows of cells, or jumps back up the page to the right (cells of more than one line), that make a page worth a look.
_TABULAR_ROWS, _PARTED_ROWS, _JUMPS = 2, 3, 3
# Share of the letters and digits that may differ between a table and the lines under it, and how many always may.
_MAX_DIFFERENCE, _ALWAYS = 0.03, 2
# A line of at least so many words that goes through more than one cell is prose; so much of it a table may hold.
_PROSE_WORDS, _MAX_TORN = 5, 0.2
# The upper part of a table in which headers stand, whose lines may be larger and run over columns.
_HEADER_SHARE = 0.3
# A line this much larger than the table's others, and bold, is a heading: then the grid runs over two tables.
_HEADING_RATIO = 1.12
# Nothing in a table is this much larger than the rest of it.
_TITLE_RATIO = 1.4
# So many lines of prose one below the other, over so much of a table's height, are a column of the page beside it.
_COLUMN_LINES, _COLUMN_EXTENT = 4, 0.5


def pages_with_cells(window: WindowText) -> tuple[int, ...]:
    """Numbers of the upright pages whose lines stand side by side in columns."""
    lines = _by_page(window.lines)
    return tuple(
        page.page
        for page in window.pages
        if page.method is PageMethod.NATIVE and page.rotation == 0 and _has_cells(page, lines[page.page])
    )


def _has_cells(page: Page, lines: Sequence[Line]) -> bool:
    if _jumps(lines) >= _JUMPS:
        return True
    rows = rows_of(page, lines)
    return sum(row.tabular for row in rows) >= _TABULAR_ROWS or sum(len(row.parts) > 2 for row in rows) >= _PARTED_ROWS


def with_tables(window: WindowText, found: Sequence[Block]) -> WindowText:
    """The window with those of the tables that hold what the lines under them say, no more and no less.

    Lines under such a table carry its index. A table that lost or invented text, lies over another, or swallowed a
    heading is left out: its lines stay text.
    """
    lines = list(window.lines)
    places = defaultdict(list)
    for position, line in enumerate(lines):
        places[line.page].append(position)
    tables = list(window.tables)
    for table in found:
        under = [at for at in places[table.page or 0] if lines[at].table is None and _within(lines[at], table)]
        beside = [lines[at] for at in places[table.page or 0] if at not in under]
        if under and _replaces(table, [lines[at] for at in under]) and not _misses_a_column(table, beside):
            for at in under:
                lines[at] = replace(lines[at], table=len(tables))
            tables.append(table)
    return replace(window, lines=tuple(lines), tables=tuple(tables))


def _by_page(lines: Sequence[Line]) -> defaultdict[int, list[Line]]:
    by_page: defaultdict[int, list[Line]] = defaultdict(list)
    for line in lines:
        by_page[line.page].append(line)
    return by_page


def _jumps(lines: Sequence[Line]) -> int:
    """How often the next line stands higher up and to the right."""
    boxes = [line.box for line in lines]
    return sum(after.y1 <= before.y0 + 0.002 and after.x0 >= before.x0 + 0.02 for before, after in pairwise(boxes))


def _within(line: Line, table: Block) -> bool:
    x, y = (line.box.x0 + line.box.x1) / 2, (line.box.y0 + line.box.y1) / 2
    return not line.hidden and any(box.x0 <= x <= box.x1 and box.y0 <= y <= box.y1 for box in table.boxes)


def _replaces(table: Block, lines: Sequence[Line]) -> bool:
    """Whether the table says what the lines under it say, and they are its cells."""
    if table.table is None or any(line.angle for line in lines):
        return False
    top, bottom = min(line.box.y0 for line in lines), max(line.box.y1 for line in lines)
    below = [line for line in lines if line.box.y0 > top + _HEADER_SHARE * (bottom - top)]
    usual = median(line.size for line in lines)
    if any(line.size >= _TITLE_RATIO * usual for line in lines):
        return False
    if any(line.bold and line.size >= _HEADING_RATIO * usual for line in below):
        return False
    if _holds_column_of_prose(lines, bottom - top):
        return False
    return _same_letters(table.table, lines) and not _tears_prose(table.table, below)


def _misses_a_column(table: Block, others: Sequence[Line]) -> bool:
    """Whether short lines stand beside the table's rows: a column of it that was not seen, prices most of all."""
    if table.table is None:
        return False
    top, bottom = min(box.y0 for box in table.boxes), max(box.y1 for box in table.boxes)
    level = [line for line in others if not line.hidden and top <= (line.box.y0 + line.box.y1) / 2 <= bottom]
    cells = [line for line in level if not _is_prose(line)]
    return 2 * len(cells) >= table.table.rows > 0 and 2 * len(cells) > len(level)


def _holds_column_of_prose(lines: Sequence[Line], height: float) -> bool:
    """Whether lines drawn one below the other over most of the table are running text: a column of the page."""
    column: list[Line] = []
    for line in [*lines, None]:
        if line is not None and (not column or line.box.y0 >= column[-1].box.y0 - (line.box.y1 - line.box.y0) / 2):
            column.append(line)
            continue
        prose = sum(map(_is_prose, column))
        extent = column[-1].box.y1 - column[0].box.y0 if column else 0.0
        if prose >= _COLUMN_LINES and 2 * prose >= len(column) and extent >= _COLUMN_EXTENT * height:
            return True
        column = [line] if line is not None else []
    return False


def _same_letters(table: Table, lines: Sequence[Line]) -> bool:
    said, held = _letters(line.text for line in lines), _letters(cell.text for cell in table.cells)
    # A header over several columns is repeated in each of them, so what it has too much is not invented.
    body = _letters(cell.text for cell in table.cells if not cell.header)
    return (said - held).total() + (body - said).total() <= max(_ALWAYS, _MAX_DIFFERENCE * said.total())


def _tears_prose(table: Table, lines: Sequence[Line]) -> bool:
    cells = [_joined(cell.text) for cell in table.cells]
    prose = [line.text for line in lines if _is_prose(line)]
    torn = sum(len(text) for text in prose if not any(_joined(text) in cell for cell in cells))
    return torn > _MAX_TORN * sum(len(line.text) for line in lines)


def _is_prose(line: Line) -> bool:
    return sum(word[:1].isalpha() for word in line.text.split()) >= _PROSE_WORDS


def _letters(texts: Iterable[str]) -> Counter[str]:
    return Counter(char for text in texts for char in text if char.isalnum())


def _joined(text: str) -> str:
    return "".join(filter(str.isalnum, text))
