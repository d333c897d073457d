"""Laying out cells that span rows and columns, whatever spans a hostile file claims."""

from __future__ import annotations

from dataclasses import replace

from pipeline.engines.documents.sink import BlockSink
from pipeline.types import Cell, Table

# HTML's own ceiling for colspan; a file may claim a hundred million.
MAX_SPAN = 1_000


class GridBuilder:
    """Places cells row by row as browsers do: each in the first column no cell from above covers.

    Raises :class:`~pipeline.engines.documents.sink.Refused` while building, when there are more than MAX_CELLS.
    """

    def __init__(self, sink: BlockSink) -> None:
        self._sink = sink
        self._cells: list[Cell] = []
        self._covered: list[int] = []
        self._newest: dict[int, int] = {}
        self._columns = 0
        self._row = -1
        self._column = 0

    @property
    def cells(self) -> int:
        """How many cells were placed."""
        return len(self._cells)

    def next_row(self) -> None:
        """Begin a row; cells that span rows reach one row further down."""
        self._row += 1
        self._column = 0
        if self._row:
            self._covered = [max(0, rows - 1) for rows in self._covered]
        self._sink.check_cells(self._row * self._columns)

    def place(self, text: str, *, column_span: int = 1, row_span: int = 1, header: bool = False) -> None:
        """Put a cell in the row begun last. Spans are clamped to 1..:data:`MAX_SPAN`."""
        column_span, row_span = (max(1, min(span, MAX_SPAN)) for span in (column_span, row_span))
        self._skip_covered()
        self._newest[self._column] = len(self._cells)
        self._columns = max(self._columns, self._column + 1)
        self._cells.append(Cell(self._row, self._column, text, row_span, column_span, header))
        self._cover(column_span, row_span)

    def skip(self, columns: int) -> None:
        """Leave columns empty (Word's gridBefore)."""
        self._column += max(0, min(columns, MAX_SPAN))

    def extend_above(self, column_span: int) -> bool:
        """Let the cell that ends right above the current column reach into this row (Word's vMerge).

        False, and nothing happens, when there is none: the merge has no beginning.
        """
        index = self._newest.get(self._column)
        if index is None or self._cells[index].row + self._cells[index].row_span != self._row:
            return False
        above = self._cells[index]
        self._cells[index] = replace(above, row_span=above.row_span + 1)
        self._column += max(1, min(column_span, MAX_SPAN))
        return True

    def table(self, *, header_rows: int = 0) -> Table:
        """The finished table: spans cut to the columns and rows where some cell begins.

        Cells of the first ``header_rows`` rows are marked as header besides those placed so.
        """
        rows = self._row + 1
        columns = self._columns
        cells = tuple(
            replace(
                cell,
                row_span=min(cell.row_span, rows - cell.row),
                column_span=min(cell.column_span, columns - cell.column),
                header=cell.header or cell.row < header_rows,
            )
            for cell in self._cells
        )
        return Table(rows, columns, cells)

    def _cover(self, column_span: int, row_span: int) -> None:
        end = self._column + column_span
        if len(self._covered) < end:
            self._covered.extend([0] * (end - len(self._covered)))
        if row_span > 1:
            self._covered[self._column : end] = [row_span] * column_span
        self._column = end

    def _skip_covered(self) -> None:
        """Move to the first column that no cell from above covers."""
        while self._column < len(self._covered) and self._covered[self._column]:
            self._column += 1
