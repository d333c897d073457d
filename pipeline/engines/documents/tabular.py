"""CSV and TSV: one table, its delimiter and encoding found from the content; cells stay the text they are."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter

from pipeline.engines.documents.charset import decode
from pipeline.engines.documents.sink import BlockSink, Limits, Refused
from pipeline.engines.media import TSV
from pipeline.errors import FailureCode
from pipeline.stages.clean import clean_text
from pipeline.types import Block, BlockKind, Cell, Table, WindowText

# In the order preferred when two fit equally well.
_DELIMITERS = (",", ";", "\t", "|")
# Excel's own hint, as the file's first line.
_HINT = re.compile(r'\A"?sep=(?P<delimiter>[,;|\t])"?\n', re.IGNORECASE)
_SAMPLE_CHARS = 64 * 1024
_SAMPLE_ROWS = 200


def read_tabular(data: bytes, media_type: str, limits: Limits) -> WindowText:
    """One table block whose first row is its header; lone cells above it are captions.

    ``malformed`` for a quoted cell longer than MAX_TEXT_BYTES, ``too-large`` past MAX_CELLS.
    """
    sink = BlockSink(limits)
    text = clean_text(decode(data))
    hint = _HINT.match(text)
    if hint:
        text = text[hint.end() :]
    delimiter = hint["delimiter"] if hint else "\t" if media_type == TSV else find_delimiter(text[:_SAMPLE_CHARS])
    rows = _rows(text, delimiter, sink, limits)
    width = max((len(row) for row in rows), default=0)
    captions = list(itertools.takewhile(lambda row: width > 1 and sum(map(bool, row)) == 1, rows))
    if len(captions) == len(rows):
        captions = []
    for caption in captions:
        sink.add(Block(BlockKind.CAPTION, " ".join(filter(None, caption))))
    sink.add_table(Block(BlockKind.TABLE, ""), _table(rows[len(captions) :]))
    return sink.window()


def find_delimiter(sample: str) -> str:
    """The delimiter that cuts most rows of the sample into the same number of cells, of which there are at least two.

    A decimal comma therefore does not outvote the semicolon that stands in every row.
    """
    lines = sample.splitlines(keepends=True)
    if len(sample) == _SAMPLE_CHARS and len(lines) > 1:
        lines.pop()
    best, best_score = ",", 0.0
    for delimiter in _DELIMITERS:
        widths = Counter(_widths(lines, delimiter))
        if not widths:
            continue
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
        agreement = count / widths.total()
        score = agreement * (1 + min(width, 50) / 100) if width > 1 else 0.0
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _widths(lines: list[str], delimiter: str) -> list[int]:
    try:
        rows = itertools.islice(csv.reader(lines, delimiter=delimiter), _SAMPLE_ROWS)
        return [len(row) for row in rows if any(cell.strip() for cell in row)]
    except csv.Error:
        return []


def _rows(text: str, delimiter: str, sink: BlockSink, limits: Limits) -> list[list[str]]:
    """Rows that are not empty, as far as the text limit goes."""
    csv.field_size_limit(limits.max_text_bytes)
    rows: list[list[str]] = []
    cells = size = 0
    try:
        for cut in csv.reader(text.splitlines(keepends=True), delimiter=delimiter):
            row = [cell.strip() for cell in cut]
            if not any(row):
                continue
            rows.append(row)
            cells += len(row)
            size += sum(map(len, row))
            sink.check_cells(cells)
            if size > limits.max_text_bytes:
                break
    except csv.Error as problem:
        detail = f"A quoted cell never ends or is longer than {limits.max_text_bytes:,} bytes."
        raise Refused(FailureCode.MALFORMED, detail) from problem
    return rows


def _table(rows: list[list[str]]) -> Table:
    cells = tuple(
        Cell(number, column, text, header=number == 0)
        for number, row in enumerate(rows)
        for column, text in enumerate(row)
        if text
    )
    columns = max((cell.column for cell in cells), default=-1) + 1
    return Table(len(rows), columns, cells)
