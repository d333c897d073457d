"""Blocks cut to the size a store and a reader take: long tables by rows, over-long text at its sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pipeline.stages.tables import header_rows
from pipeline.types import Block, Cell, Table

# A table whose Markdown is longer is stored in slices (contract).
MAX_TABLE_CHARS = 24_000
# A block's JSON is at most 64 KiB; what a block carries beside its text and cells fits in the rest.
MAX_BLOCK_JSON = 60_000
# Bytes a cell's JSON has beside its text.
_CELL_JSON = 110
_MAX_TEXT_BYTES = 48_000
_MAX_CELL_BYTES = 12_000

# Characters that JSON writes with a backslash, control characters aside.
_ESCAPED = re.compile(r"[\"\\\n\t]")
_BREAKS = (re.compile(r"\n"), re.compile(r"[.!?…。！？]\s"), re.compile(r"\s"))


def sliced(block: Block) -> Iterator[Block]:
    """``block`` itself, or the blocks it has to be stored as. Nothing is lost."""
    if block.table is not None:
        yield from _table_slices(block, block.table)
    elif len(block.text) <= _MAX_TEXT_BYTES // 4 or _json_bytes(block.text) <= _MAX_TEXT_BYTES:
        yield block
    else:
        for text in _pieces(block.text, _MAX_TEXT_BYTES):
            yield replace(block, text=text)


@dataclass(frozen=True, slots=True)
class _RowCost:
    """What a row adds to a table's Markdown, in characters, and to its JSON, in bytes."""

    characters: int
    json: int

    def fits(self, other: _RowCost) -> bool:
        return self.characters + other.characters <= MAX_TABLE_CHARS and self.json + other.json <= MAX_BLOCK_JSON


def _table_slices(block: Block, table: Table) -> Iterator[Block]:
    costs = _costs(table)
    whole = _sum(costs)
    if whole.characters <= MAX_TABLE_CHARS and whole.json <= MAX_BLOCK_JSON:
        yield block
        return
    pieces = [
        piece
        for band in _bands(_with_short_cells(table))
        for piece in _row_slices(band, header_rows(band) if any(cell.header for cell in band.cells) else 0)
    ]
    for part, piece in enumerate(pieces, start=1):
        # The caption or text of the table, if it has any, stays with its first part.
        yield replace(block, text=block.text if part == 1 else "", table=replace(piece, part=part, parts=len(pieces)))


def _costs(table: Table) -> list[_RowCost]:
    characters = [table.columns * 3 + 2] * table.rows
    json = [0] * table.rows
    for cell in table.cells:
        # A cell spanning rows is repeated by a reader in each of them.
        length = len(cell.text) + cell.text.count("|")
        for row in range(cell.row, min(cell.row + cell.row_span, table.rows)):
            characters[row] += length
        json[min(cell.row, table.rows - 1)] += _CELL_JSON + _json_bytes(cell.text)
    return [_RowCost(*pair) for pair in zip(characters, json, strict=True)]


def _sum(costs: Sequence[_RowCost]) -> _RowCost:
    return _RowCost(sum(cost.characters for cost in costs), sum(cost.json for cost in costs))


def _row_slices(table: Table, head: int) -> Iterator[Table]:
    costs = _costs(table)
    header = _sum(costs[:head])
    if 2 * header.characters > MAX_TABLE_CHARS or 2 * header.json > MAX_BLOCK_JSON:
        head, header = 0, _RowCost(0, 0)
    start, used = head, header
    bounds: list[tuple[int, int]] = []
    for row in range(head, table.rows):
        if row > start and not used.fits(costs[row]):
            bounds.append((start, row))
            start, used = row, header
        used = _RowCost(used.characters + costs[row].characters, used.json + costs[row].json)
    bounds.append((start, table.rows))
    top = [cell for cell in table.cells if cell.row < head]
    body = sorted((cell for cell in table.cells if cell.row >= head), key=lambda cell: (cell.row, cell.column))
    position = 0
    open_spans: list[Cell] = []
    for first, last in bounds:
        taken = [cell for cell in open_spans if cell.row + cell.row_span > first]
        while position < len(body) and body[position].row < last:
            taken.append(body[position])
            position += 1
        open_spans = [cell for cell in taken if cell.row + cell.row_span > last]
        cells = (*top, *(_clipped(cell, first, last, head) for cell in taken))
        yield Table(head + last - first, table.columns, cells)


def _clipped(cell: Cell, first: int, last: int, head: int) -> Cell:
    """The part of a cell that stands in rows ``first``..``last`` (exclusive), below ``head`` repeated rows."""
    begin, end = max(cell.row, first), min(cell.row + cell.row_span, last)
    return replace(cell, row=begin - first + head, row_span=end - begin)


def _bands(table: Table) -> Iterator[Table]:
    """The table, or groups of its columns where a single row would not fit a block."""
    if max(cost.json for cost in _costs(table)) <= MAX_BLOCK_JSON // 2:
        yield table
        return
    widest = [0] * table.columns
    for cell in table.cells:
        at = min(cell.column, table.columns - 1)
        widest[at] = max(widest[at], _CELL_JSON + _json_bytes(cell.text))
    start, used = 0, 0
    bounds: list[tuple[int, int]] = []
    for column, needed in enumerate(widest):
        if column > start and used + needed > MAX_BLOCK_JSON // 2:
            bounds.append((start, column))
            start, used = column, 0
        used += needed
    bounds.append((start, table.columns))
    begins = {column: band for band, (first, last) in enumerate(bounds) for column in range(first, last)}
    members: list[list[Cell]] = [[] for _ in bounds]
    for cell in table.cells:
        band = begins[min(cell.column, table.columns - 1)]
        first, last = bounds[band]
        span = min(cell.column_span, last - cell.column)
        members[band].append(replace(cell, column=cell.column - first, column_span=max(1, span)))
    for (first, last), cells in zip(bounds, members, strict=True):
        yield Table(table.rows, last - first, tuple(cells))


def _with_short_cells(table: Table) -> Table:
    """The same table, an over-long cell going on in further rows below its own."""
    if all(len(cell.text) * 6 <= _MAX_CELL_BYTES or _json_bytes(cell.text) <= _MAX_CELL_BYTES for cell in table.cells):
        return table
    parts = {index: list(_pieces(cell.text, _MAX_CELL_BYTES)) for index, cell in enumerate(table.cells)}
    more = [0] * table.rows
    for index, cell in enumerate(table.cells):
        last = min(cell.row + cell.row_span, table.rows) - 1
        more[last] = max(more[last], len(parts[index]) - 1)
    shift, moved = 0, []
    for extra in more:
        moved.append(shift)
        shift += extra
    cells: list[Cell] = []
    for index, cell in enumerate(table.cells):
        last = min(cell.row + cell.row_span, table.rows) - 1
        span = last + moved[last] - cell.row - moved[cell.row] + 1
        cells.append(replace(cell, text=parts[index][0], row=cell.row + moved[cell.row], row_span=span))
        cells += [
            replace(cell, text=text, row=last + moved[last] + number, row_span=1)
            for number, text in enumerate(parts[index][1:], start=1)
        ]
    return Table(table.rows + shift, table.columns, tuple(cells))


def _json_bytes(text: str) -> int:
    if text.isascii():
        return len(text) + len(_ESCAPED.findall(text))
    return len(text.encode()) + len(_ESCAPED.findall(text))


def _pieces(text: str, budget: int) -> Iterator[str]:
    """``text`` in pieces of at most ``budget`` JSON bytes, cut after a line, a sentence or a word if there is one."""
    start = 0
    while start < len(text):
        end = min(len(text), start + budget)
        while (used := _json_bytes(text[start:end])) > budget:
            end = start + max(1, (end - start) * budget // used - 1)
        if end < len(text):
            end = _good_cut(text, start, end)
        yield text[start:end].strip() if start or end < len(text) else text
        start = end
    if not text:
        yield text


def _good_cut(text: str, start: int, end: int) -> int:
    for pattern in _BREAKS:
        cuts = [match.end() for match in pattern.finditer(text, start + (end - start) // 2, end)]
        if cuts:
            return cuts[-1]
    return end
