"""Tables on pages built here: found, and kept only when they say what the page says."""

from __future__ import annotations

import time
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from pipeline.engines.asking import Asker
from pipeline.engines.parser import SandboxedParser, limits_of
from pipeline.engines.pdf import jobs, tables
from pipeline.engines.sandbox.client import DeathCause, SandboxDeath, SandboxReply
from pipeline.settings import load
from pipeline.stages.extract import ExtractLimits, assemble
from pipeline.stages.tabular import pages_with_cells, with_tables
from pipeline.types import Block, BlockKind, Box, Cell, ExtractedDocument, Json, Table, WindowText
from tests.inputs.pdfs import PageSpec, lines, pdf, text

ROWS = [
    ("Part", "Material", "Price"),
    ("Widget", "Steel", "4.20"),
    ("Gadget", "Brass", "5.10"),
    ("Sprocket", "Bronze", "17.00"),
    ("Gear", "Nylon", "3.30"),
    ("Bolt", "Iron", "0.10"),
]
COLUMNS = (80, 220, 360)
PROSE = "The parts below are kept in stock and can be sent on the day of the order."


def grid(*, ruled: bool, top: float = 650) -> bytes:
    content = b""
    for number, row in enumerate(ROWS):
        y = top - 20 * number
        content += b"".join(
            text(x, y, words, font="F2" if number == 0 else "F1") for x, words in zip(COLUMNS, row, strict=True)
        )
        if ruled:
            content += b"74 %g m 480 %g l S\n" % (y + 14, y + 14)
    if ruled:
        low, high = top - 20 * len(ROWS) + 14, top + 14
        content += b"74 %g m 480 %g l S\n" % (low, low)
        content += b"".join(b"%g %g m %g %g l S\n" % (x, low, x, high) for x in (74, 214, 354, 480))
    return content


def read(document: bytes) -> WindowText:
    answer = jobs.read(BytesIO(document), {"first_page": 1, "last_page": 1, "max_pages": 9})
    window = jobs.WINDOW_JSON.validate_json(answer)
    assert isinstance(window, WindowText)
    return window


def found(document: bytes) -> tuple[Block, ...]:
    window = jobs.WINDOW_JSON.validate_json(tables.tables(BytesIO(document), {"pages": [1]}))
    assert isinstance(window, WindowText)
    return window.tables


def cells(table: Table) -> list[tuple[str, ...]]:
    texts = {(cell.row, cell.column): cell.text for cell in table.cells}
    return [tuple(texts.get((row, column), "") for column in range(table.columns)) for row in range(table.rows)]


@pytest.mark.parametrize("ruled", [True, False])
def test_a_table_replaces_its_lines_where_they_stood(ruled: bool) -> None:
    document = pdf([text(72, 700, PROSE) + grid(ruled=ruled) + text(72, 480, "Prices hold until the end of May.")])
    window = read(document)
    assert pages_with_cells(window) == (1,)
    merged = with_tables(window, found(document))
    (table,) = merged.tables
    assert table.table is not None
    assert cells(table.table) == ROWS
    assert {cell.text for cell in table.table.cells if cell.header} == set(ROWS[0])
    limits = ExtractLimits(max_blocks=100, max_text_bytes=10_000, max_cells=100)
    extracted = assemble([merged], limits)
    assert isinstance(extracted, ExtractedDocument)
    assert [block.kind for block in extracted.blocks] == [BlockKind.PARAGRAPH, BlockKind.TABLE, BlockKind.PARAGRAPH]
    (box,) = table.boxes
    assert box.x0 == pytest.approx(80 / 612, abs=0.02)
    assert box.y0 == pytest.approx((792 - 660) / 792, abs=0.02)


def test_prose_has_no_cells() -> None:
    window = read(pdf([lines(72, 700, [PROSE] * 6)]))
    assert pages_with_cells(window) == ()


def test_columns_of_prose_are_no_table() -> None:
    rows = [f"line {number} of a column that holds running text only" for number in range(20)]
    document = pdf([lines(60, 700, rows, size=9) + lines(320, 700, rows, size=9)])
    window = read(document)
    assert with_tables(window, found(document)).tables == ()


def test_a_turned_page_and_one_of_endless_strokes_are_left_alone() -> None:
    assert found(pdf([PageSpec(grid(ruled=True), rotate=90)])) == ()
    strokes = b"".join(b"%d %d m %d %d l S\n" % (n % 600, n % 700, n % 500, n % 300) for n in range(30_000))
    started = time.process_time()
    assert found(pdf([strokes + grid(ruled=True)])) == ()
    assert time.process_time() - started < 5


def test_a_table_that_lost_or_invented_text_is_left_out() -> None:
    document = pdf([grid(ruled=True)])
    window = read(document)
    (good,) = found(document)
    assert good.table is not None
    assert len(with_tables(window, [good]).tables) == 1
    lost = replace(good, table=replace(good.table, cells=good.table.cells[:-3]))
    invented = replace(good, table=replace(good.table, cells=(*good.table.cells, Cell(5, 1, "Invented", 1, 1))))
    assert with_tables(window, [lost, invented]).tables == ()
    assert with_tables(window, [lost]).lines == window.lines


def test_a_grid_that_tears_sentences_apart_is_no_table() -> None:
    head, tail = " ".join(PROSE.split()[:5]), " ".join(PROSE.split()[5:])
    torn = tuple(Cell(row, column, half) for row in range(6) for column, half in enumerate((head, tail)))
    block = Block(BlockKind.TABLE, "", page=1, boxes=(Box(1, 0, 0, 1, 1),), table=Table(6, 2, torn))
    assert with_tables(read(pdf([lines(72, 700, [PROSE] * 6)])), [block]).tables == ()


def test_a_grid_over_a_column_of_prose_is_no_table() -> None:
    left = lines(60, 700, ["Senate", "House", "Cabinet", "Mayor", "Council", "Board"])
    document = pdf([left + lines(300, 700, ["the women of the country are a minority in it"] * 6)])
    halves = [(row, column) for row in range(6) for column in (0, 1)]
    window = read(document)
    texts = [line.text for line in window.lines]
    grid_cells = tuple(Cell(row, column, texts[row + 6 * column]) for row, column in halves)
    block = Block(BlockKind.TABLE, "", page=1, boxes=(Box(1, 0, 0, 1, 1),), table=Table(6, 2, grid_cells))
    assert with_tables(window, [block]).tables == ()


def test_a_second_table_over_the_first_finds_no_lines() -> None:
    document = pdf([grid(ruled=True)])
    (table,) = found(document)
    assert len(with_tables(read(document), [table, table]).tables) == 1


class InProcess:
    """A sandbox that runs the PDF jobs here, or dies of the one it is told to."""

    def __init__(self, dies_of: str | None = None) -> None:
        self.dies_of = dies_of
        self.called: list[str] = []

    def call(
        self, job: str, content: Path, arguments: dict[str, Json], *, timeout_s: float, memory_bytes: int
    ) -> SandboxReply | SandboxDeath:
        self.called.append(job)
        if job == self.dies_of:
            return SandboxDeath(DeathCause.TIMED_OUT, timeout_s, memory_bytes)
        function = {"pdf.read": jobs.read, "pdf.tables": tables.tables}[job]
        with content.open("rb") as opened:
            return SandboxReply(function(opened, arguments), 0, 0.0)


def parsed(sandbox: InProcess, document: bytes, folder: Path) -> WindowText:
    path = folder / "document.pdf"
    path.write_bytes(document)
    reader = SandboxedParser(Asker(sandbox, 10, 1 << 30), limits_of(load()))
    window = reader.read(path, "application/pdf", 1, 1)
    assert isinstance(window, WindowText)
    return window


def test_the_parser_looks_for_tables_only_where_cells_are(tmp_path: Path) -> None:
    sandbox = InProcess()
    assert len(parsed(sandbox, pdf([grid(ruled=True)]), tmp_path).tables) == 1
    assert sandbox.called == ["pdf.read", "pdf.tables"]
    prose = InProcess()
    assert parsed(prose, pdf([lines(72, 700, [PROSE] * 6)]), tmp_path).tables == ()
    assert prose.called == ["pdf.read"]


def test_losing_the_search_for_tables_loses_only_tables(tmp_path: Path) -> None:
    document = pdf([grid(ruled=True)])
    window = parsed(InProcess(dies_of="pdf.tables"), document, tmp_path)
    assert window.lines == read(document).lines
    assert window.tables == ()
    assert len(window.warnings) == 1
    assert "tables were read as lines" in window.warnings[0]


def test_a_table_that_missed_a_column_is_left_as_its_rows() -> None:
    """Prices set far to the right of a short list: half a table looks authoritative and answers wrongly."""
    window = read(pdf([grid(ruled=False)]))
    box = Box(1, 70 / 612, 1 - 665 / 792, 350 / 612, 1 - 540 / 792)
    cells = tuple(Cell(row, column, ROWS[row][column], header=row == 0) for row in range(6) for column in range(2))
    half = Block(BlockKind.TABLE, "", page=1, boxes=(box,), table=Table(6, 2, cells))
    assert with_tables(window, [half]).tables == ()
    whole = replace(
        half,
        boxes=(replace(box, x1=490 / 612),),
        table=Table(6, 3, tuple(Cell(r, c, ROWS[r][c], header=r == 0) for r in range(6) for c in range(3))),
    )
    assert len(with_tables(window, [whole]).tables) == 1
    document = assemble([with_tables(window, [half])], ExtractLimits(1000, 1_000_000, 1000))
    assert isinstance(document, ExtractedDocument)
    assert any("Widget\tSteel\t4.20" in block.text for block in document.blocks)
