"""Tables as lines of text: whole, or in pieces that each still say what their columns mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pipeline.stages.cut import Cost, cut
from pipeline.types import Table

Row = Sequence[str]


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a table as Markdown, and the table rows it holds beside the header (inclusive, from 0)."""

    text: str
    first_row: int
    last_row: int


def grid(table: Table) -> list[list[str]]:
    """The cells' text by row and column, on one line each.

    A cell spanning rows stands in each of them, and a header spanning some of the columns above each of those, so
    that a row says by itself what it belongs to. A cell spanning the whole width, or columns of the body, stands once.
    """
    rows = [[""] * table.columns for _ in range(table.rows)]
    for cell in table.cells:
        text = " ".join(cell.text.split())
        wide = cell.header and cell.column_span < table.columns
        for row in range(cell.row, min(cell.row + cell.row_span, table.rows)):
            for column in range(cell.column, min(cell.column + (cell.column_span if wide else 1), table.columns)):
                rows[row][column] = text
    return rows


def header_rows(table: Table) -> int:
    """How many leading rows are header: those of header cells only; the first row when no row is."""
    body = {cell.row for cell in table.cells if not cell.header}
    flagged = {row for cell in table.cells if cell.header for row in range(cell.row, cell.row + cell.row_span)} - body
    count = next((row for row in range(table.rows) if row not in flagged), table.rows)
    return count if 0 < count < table.rows else min(1, table.rows)


def pipe_row(cells: Row) -> str:
    """One row between pipes; a pipe in a cell is escaped as GitHub's Markdown wants it."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def lines(table: Table, row: Callable[[Row], str] = pipe_row) -> list[str]:
    """The table as lines of GitHub's Markdown; the first row is the header, as the format wants one."""
    rows = grid(table)
    return _with_rule([row(cells) for cells in rows], table.columns) if rows else []


def split(table: Table, cost: Cost, budget: int) -> Iterator[Piece]:
    """The table whole if it fits ``budget``, else by rows with its header repeated.

    A header that takes more than half the budget is split by columns first (the first column, which names the row,
    comes along), a row that does not fit beside its header by cells, a cell by sentences or words. Empty rows go.
    """
    rows = grid(table)
    head = header_rows(table)
    body = [(number, cells) for number, cells in enumerate(rows) if number >= head and any(cells)]
    header = rows[:head] if any(map(any, rows[:head])) else []
    if not header and not body:
        return
    last = body[-1][0] if body else head - 1
    whole = "\n".join(_with_rule([pipe_row(cells) for cells in header + [cells for _, cells in body]], table.columns))
    if cost(whole) <= budget:
        yield Piece(whole, head if body else 0, last)
        return
    for columns in _column_groups(header, table.columns, cost, budget // 2):
        picked = [[cells[column] for column in columns] for cells in header]
        if _header_cost(picked, cost) > budget // 2 or not body:
            # One column's name alone is an essay: it is text then, not a header to repeat.
            yield from _by_rows([], [(0, cells) for cells in picked], cost, budget)
            picked = []
        yield from _by_rows(picked, [(number, [cells[c] for c in columns]) for number, cells in body], cost, budget)


def _with_rule(rendered: list[str], columns: int) -> list[str]:
    """Lines with the rule that makes the first a header. One hyphen a column is enough, and each is a token."""
    return [rendered[0], "|" + "-|" * columns, *rendered[1:]]


def _header_lines(header: Sequence[Row]) -> list[str]:
    return _with_rule([pipe_row(cells) for cells in header], len(header[0])) if header else []


def _header_cost(header: Sequence[Row], cost: Cost) -> int:
    return cost("\n".join(_header_lines(header))) if header else 0


def _column_groups(header: Sequence[Row], columns: int, cost: Cost, budget: int) -> Iterator[list[int]]:
    """Columns, in order, in groups whose header fits the budget; column 0 leads every group where it fits."""
    if _header_cost(header, cost) <= budget:
        yield list(range(columns))
        return
    each = [_header_cost([[cells[column]] for cells in header], cost) for column in range(columns)]
    key = [0] if each[0] <= budget // 2 else []
    group: list[int] = []
    for column in range(columns):
        used = sum(each[member] for member in group)
        if group and used + each[column] > budget:
            yield group
            group = [*key] if key and each[0] + each[column] <= budget else []
        group.append(column)
    yield group


def _by_rows(header: Sequence[Row], body: Sequence[tuple[int, Row]], cost: Cost, budget: int) -> Iterator[Piece]:
    """Rows, as many as fit below the repeated header."""
    top = _header_lines(header)
    room = budget - (cost("\n".join(top)) if top else 0)
    held: list[str] = []
    used, first, last = 0, 0, 0
    for number, cells in body:
        line = pipe_row(cells)
        needed = cost(line)
        if held and used + needed > room:
            yield Piece("\n".join(top + held), first, last)
            held, used = [], 0
        if needed > room:
            yield from (Piece(text, number, number) for text in _by_cells(header, cells, cost, budget))
            continue
        if not held:
            first = number
        held.append(line)
        used, last = used + needed, number
    if held:
        yield Piece("\n".join(top + held), first, last)


def _by_cells(header: Sequence[Row], cells: Row, cost: Cost, budget: int) -> Iterator[str]:
    """One row that does not fit beside its header: as many cells as fit, each below its column's name."""

    def piece(columns: Sequence[int], row: Row) -> str:
        return "\n".join([*_header_lines([[line[column] for column in columns] for line in header]), pipe_row(row)])

    def escaped(text: str) -> int:
        return cost(text.replace("|", "\\|"))

    group: list[int] = []
    used = 0
    for column in [column for column, text in enumerate(cells) if text or any(line[column] for line in header)]:
        name = _header_cost([[line[column]] for line in header], cost)
        needed = name + cost(pipe_row([cells[column]]))
        if group and used + needed > budget:
            yield piece(group, [cells[member] for member in group])
            group, used = [], 0
        if needed > budget:
            room = budget - name - cost(pipe_row([""]))
            yield from (piece([column], [part]) for part in cut(cells[column], escaped, room))
        else:
            group, used = [*group, column], used + needed
    if group:
        yield piece(group, [cells[member] for member in group])
