"""The sandbox job ``pdf.tables``: grids that liteparse sees on chosen pages, as far as they are plausible.

A job of its own, because losing it must lose tables and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import BinaryIO

import pypdfium2 as pdfium
import pypdfium2.raw as raw
from liteparse import AnnotationRect, LayoutBlock, LayoutCell, LiteParse, ParsedPage, ParseError, VectorGraphics

from pipeline.engines.pdf.jobs import WINDOW_JSON
from pipeline.engines.pdf.lines import expand_ligatures
from pipeline.stages.clean import clean_text
from pipeline.types import Block, BlockKind, Box, Cell, Json, Table, WindowText

# liteparse takes more than a minute for a page of sixty thousand strokes.
_MAX_OBJECTS = 5_000

# A grid is a table when it has at least so many rows, columns and filled cells and is filled at least so far …
_MIN_ROWS, _MIN_COLUMNS, _MIN_FILLED, _MIN_FILL = 2, 2, 4, 0.45
_MIN_FILLED_OF_TWO_ROWS = 6
# … and when its cells are not pieces of running text: long ones, or ones that begin in the middle of a sentence.
_LONG_WORDS, _MAX_LONG_SHARE = 18, 0.12
_MAX_MEDIAN_CHARS = 45
_MAX_MIDDLE_SHARE, _MIDDLE_WORDS = 0.35, 3
# Rules that draw the grid vouch for it whatever is in the cells: so many in each direction, each over half of its side.
_MIN_RULES, _RULE_SHARE = 3, 0.5
# A chart's grid lines are rules too, but its labels fill little of what they draw.
_MIN_RULED_FILL = 0.4
# Rules nearer than this, in points, are one.
_SAME_RULE = 3.0

# liteparse writes what it takes for formulas as LaTeX, which is not what the page says.
_FORMULA = re.compile(r"\$[_^\\]|[_^\\][a-z]*\{")
# A cell with a word divided inside it, or at its end, is one of narrow columns that were not told apart.
_DIVIDED = re.compile(r"[^\W\d_]-(?: |$)")
_MAX_DIVIDED = 0.1
_SPACES = re.compile(r"\s+")


def tables(content: BinaryIO, arguments: Mapping[str, Json]) -> bytes:
    """A :class:`~pipeline.types.WindowText` of ``tables`` alone. Arguments: ``pages``, a list of numbers from 1."""
    pages = arguments["pages"]
    if not isinstance(pages, list):
        raise TypeError("pages is a list of page numbers")
    document = content.read()
    chosen = [page for page in pages if isinstance(page, int)]
    return WINDOW_JSON.dump_json(WindowText(tables=tuple(_found(document, _simple_pages(document, chosen)))))


def _simple_pages(document: bytes, pages: Sequence[int]) -> list[int]:
    """Those of the pages that are drawn with few enough objects."""
    simple = []
    with pdfium.PdfDocument(document) as pdf:
        for number in pages:
            if handle := raw.FPDF_LoadPage(pdf, number - 1):
                if raw.FPDFPage_CountObjects(handle) <= _MAX_OBJECTS and raw.FPDFPage_GetRotation(handle) == 0:
                    simple.append(number)
                raw.FPDF_ClosePage(handle)
    return simple


def _found(document: bytes, pages: Sequence[int]) -> Iterator[Block]:
    if not pages:
        return
    parser = LiteParse(
        ocr_enabled=False,
        quiet=True,
        extract_blocks=True,
        extract_links=False,
        extract_vector_graphics=True,
        continue_on_page_error=True,
        image_mode="off",
        target_pages=",".join(map(str, pages)),
    )
    try:
        parsed = parser.parse(document)
    except ParseError:
        return
    for page in parsed.pages:
        for block in page.blocks or ():
            if block.kind == "table" and block.bbox is not None:
                rows = _rows(block)
                if _torn(rows):
                    continue
                if _plausible(rows) or (_fill(rows) >= _MIN_RULED_FILL and _ruled(block.bbox, page.vector_graphics)):
                    yield _table(rows, block, page)


def _rows(block: LayoutBlock) -> list[list[str]]:
    """The text of the cells by row, the header first; rows without any text are left out."""
    given: list[list[LayoutCell]] = [*([block.header] if block.header else []), *(block.rows or [])]
    rows = [[_text(cell.text) for cell in row] for row in given]
    return [row for row in rows if any(row)]


def _text(text: str) -> str:
    return _SPACES.sub(" ", expand_ligatures(clean_text(text))).strip()


def _torn(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the cells are not what stands on the page, or are parts of cells."""
    filled = [text for row in rows for text in row if text]
    divided = sum(_DIVIDED.search(text) is not None for text in filled)
    return divided > _MAX_DIVIDED * len(filled) or any(map(_FORMULA.search, filled))


def _fill(rows: Sequence[Sequence[str]]) -> float:
    """The share of the grid's cells that hold text."""
    return sum(bool(text) for row in rows for text in row) / max(1, len(rows) * max(map(len, rows), default=0))


def _plausible(rows: Sequence[Sequence[str]]) -> bool:
    columns = max(map(len, rows), default=0)
    filled = [text for row in rows for text in row if text]
    if len(rows) < _MIN_ROWS or columns < _MIN_COLUMNS or len(filled) < _MIN_FILLED:
        return False
    if _fill(rows) < _MIN_FILL:
        return False
    if len(rows) == _MIN_ROWS and len(filled) < _MIN_FILLED_OF_TWO_ROWS:
        return False
    words = [len(text.split()) for text in filled]
    long = sum(count > _LONG_WORDS for count in words)
    middle = sum(text[0].islower() and count >= _MIDDLE_WORDS for text, count in zip(filled, words, strict=True))
    return (
        long <= _MAX_LONG_SHARE * len(filled)
        and sorted(map(len, filled))[len(filled) // 2] <= _MAX_MEDIAN_CHARS
        and middle <= _MAX_MIDDLE_SHARE * len(filled)
    )


def _ruled(box: AnnotationRect, drawn: VectorGraphics | None) -> bool:
    if drawn is None:
        return False
    across: list[float] = []
    down: list[float] = []
    right, bottom = box.x + box.width, box.y + box.height
    for line in drawn.lines:
        x0, x1, y0, y1 = *sorted((line.x1, line.x2)), *sorted((line.y1, line.y2))
        wide, high = min(x1, right) - max(x0, box.x), min(y1, bottom) - max(y0, box.y)
        if y1 - y0 <= 1 and wide >= _RULE_SHARE * box.width and -_SAME_RULE <= y0 - box.y <= box.height + _SAME_RULE:
            across.append(y0)
        elif x1 - x0 <= 1 and high >= _RULE_SHARE * box.height and -_SAME_RULE <= x0 - box.x <= box.width + _SAME_RULE:
            down.append(x0)
    return _distinct(across) >= _MIN_RULES and _distinct(down) >= _MIN_RULES


def _distinct(places: Sequence[float]) -> int:
    count, last = 0, float("-inf")
    for place in sorted(places):
        if place - last > _SAME_RULE:
            count, last = count + 1, place
    return count


def _table(rows: Sequence[Sequence[str]], block: LayoutBlock, page: ParsedPage) -> Block:
    headed = bool(block.header) and any(_text(cell.text) for cell in block.header or ())
    cells = tuple(
        Cell(number, column, text, header=headed and number == 0)
        for number, row in enumerate(rows)
        for column, text in enumerate(row)
        if text
    )
    return Block(
        BlockKind.TABLE,
        "",
        page=page.page_num,
        boxes=(_box(block.bbox, page),),
        table=Table(len(rows), max(map(len, rows)), cells),
    )


def _box(rect: AnnotationRect, page: ParsedPage) -> Box:
    def share(value: float, whole: float) -> float:
        return round(min(1.0, max(0.0, value / whole)), 5) if whole > 0 else 0.0

    return Box(
        page.page_num,
        share(rect.x, page.width),
        share(rect.y, page.height),
        share(rect.x + rect.width, page.width),
        share(rect.y + rect.height, page.height),
    )
