"""The document pass, on PDFs built here and on values."""

from __future__ import annotations

from io import BytesIO

import pytest

from pipeline.engines.pdf import jobs
from pipeline.errors import Failure, FailureCode
from pipeline.stages.extract import ExtractLimits, assemble
from pipeline.stages.slices import MAX_BLOCK_JSON, MAX_TABLE_CHARS, sliced
from pipeline.stages.tables import lines as markdown_lines
from pipeline.types import Block, BlockKind, Box, Cell, ExtractedDocument, Line, Page, PageMethod, Table, WindowText
from tests.inputs.pdfs import PageSpec, lines, mapped_font, pdf, text

LIMITS = ExtractLimits(max_blocks=200_000, max_text_bytes=20 * 1024 * 1024, max_cells=2_000_000)
PROSE = [
    "A paragraph is a group of sentences that belong together and that",
    "say one thing. Its lines stand at one distance from each other, and",
    "the last of them is shorter.",
]


def windows(document: bytes, size: int = 16) -> list[WindowText]:
    profile = jobs.PROFILE_JSON.validate_json(jobs.profile(BytesIO(document), {"max_pages": 2_000}))
    assert not isinstance(profile, Failure)
    found = []
    for first in range(1, profile.pages + 1, size):
        arguments = {"first_page": first, "last_page": min(profile.pages, first + size - 1), "max_pages": 2_000}
        window = jobs.WINDOW_JSON.validate_json(jobs.read(BytesIO(document), arguments))
        assert isinstance(window, WindowText)
        found.append(window)
    return found


def extracted(document: bytes, size: int = 16) -> ExtractedDocument:
    answer = assemble(windows(document, size), LIMITS)
    assert isinstance(answer, ExtractedDocument)
    return answer


def shown(document: bytes) -> list[tuple[BlockKind, str]]:
    return [(block.kind, block.text) for block in extracted(document).blocks]


# --- layout -------------------------------------------------------------------------------


def test_lines_become_paragraphs() -> None:
    page = lines(72, 700, PROSE) + lines(72, 640, ["Another one, after more room."])
    assert shown(pdf([page])) == [
        (BlockKind.PARAGRAPH, " ".join(PROSE)),
        (BlockKind.PARAGRAPH, "Another one, after more room."),
    ]


def test_indented_first_lines_separate_paragraphs() -> None:
    page = lines(72, 700, PROSE) + lines(92, 656.8, ["A first line set in, with nothing above it,"])
    page += lines(72, 642.4, ["goes on at the margin."])
    assert [kind for kind, _ in shown(pdf([page]))] == [BlockKind.PARAGRAPH] * 2


def test_headings_have_levels_by_size_and_weight() -> None:
    page = text(72, 740, "The title", size=24) + text(72, 700, "A chapter", size=16)
    page += lines(72, 670, PROSE) + text(72, 610, "A bold line apart", font="F2") + lines(72, 590, PROSE)
    blocks = extracted(pdf([page])).blocks
    assert [(block.text, block.level) for block in blocks if block.kind is BlockKind.HEADING] == [
        ("The title", 1),
        ("A chapter", 2),
        ("A bold line apart", 3),
    ]


def test_a_heading_goes_on_over_rows_with_words_or_years() -> None:
    page = lines(72, 740, ["The situation today:", "2001-2019"], size=18) + lines(72, 680, PROSE)
    assert shown(pdf([page]))[0] == (BlockKind.HEADING, "The situation today: 2001-2019")


def test_section_numbers_deepen_headings_of_one_style() -> None:
    page = b"".join(
        text(72, 740 - 70 * place, heading, size=14) + lines(72, 720 - 70 * place, PROSE)
        for place, heading in enumerate(["1 Scope", "1.1 Terms", "1.1.1 Symbols", "2 Method"])
    )
    blocks = extracted(pdf([page])).blocks
    assert [block.level for block in blocks if block.kind is BlockKind.HEADING] == [1, 2, 3, 1]


def test_large_print_that_goes_on_for_lines_is_no_heading() -> None:
    page = lines(72, 740, PROSE * 3, size=14) + lines(72, 560, ["small print"] * 40, size=6)
    assert BlockKind.HEADING not in {kind for kind, _ in shown(pdf([page]))}


def test_columns_drawn_row_by_row_are_read_one_after_the_other() -> None:
    rows = range(1, 9)
    page = b"".join(
        text(60, 720 - 14 * row, f"left line {row} of the first column")
        + text(330, 720 - 14 * row, f"right line {row} of the second column")
        for row in rows
    )
    for rotate in (0, 90, 270):
        (block,) = extracted(pdf([PageSpec(page, rotate=rotate)])).blocks
        left = " ".join(f"left line {row} of the first column" for row in rows)
        right = " ".join(f"right line {row} of the second column" for row in rows)
        assert block.text == f"{left} {right}"


def test_rows_of_cells_stay_rows() -> None:
    prices = {"Widget": "4.20", "Gadget": "5.10", "Sprocket": "17.00", "Gear": "3.30", "Bolt": "0.10"}
    page = b"".join(
        text(72, 700 - 15 * place, name) + text(300, 700 - 15 * place, price)
        for place, (name, price) in enumerate(prices.items())
    )
    ((kind, rows),) = shown(pdf([page]))
    assert kind is BlockKind.PARAGRAPH
    assert rows.split("\n") == [f"{name}\t{price}" for name, price in prices.items()]


def test_lists_keep_their_markers_and_nesting() -> None:
    page = text(72, 740, "The steps are these:")
    items = [(80, "1. First step"), (80, "2. Second step"), (100, "- a detail"), (80, "3. Third")]
    for place, (x, item) in enumerate(items):
        page += text(x, 724 - 14.4 * place, item)
    blocks = extracted(pdf([page])).blocks
    assert [(block.marker, block.text, block.level) for block in blocks if block.kind is BlockKind.LIST_ITEM] == [
        ("1.", "First step", 0),
        ("2.", "Second step", 0),
        ("-", "a detail", 1),
        ("3.", "Third", 0),
    ]


def test_a_list_item_goes_on_under_its_text() -> None:
    page = text(72, 700, "•") + lines(90, 700, PROSE) + text(72, 656.8, "•") + text(90, 656.8, "second")
    assert shown(pdf([page])) == [(BlockKind.LIST_ITEM, " ".join(PROSE)), (BlockKind.LIST_ITEM, "second")]


def test_a_line_that_begins_with_a_number_is_no_list() -> None:
    rows = ["The whole of the delivery took no longer than about half of", "12. June was the day it began on."]
    page = lines(72, 700, rows)
    assert [kind for kind, _ in shown(pdf([page]))] == [BlockKind.PARAGRAPH]


def test_code_keeps_its_lines_and_indents() -> None:
    page = (
        lines(72, 720, PROSE) + lines(72, 660, ["def f(x):"], font="F3") + lines(100.8, 645.6, ["return x"], font="F3")
    )
    page += lines(72, 610, PROSE)
    assert (BlockKind.CODE, "def f(x):\n    return x") in shown(pdf([page]))


def test_captions_are_captions() -> None:
    page = lines(72, 700, PROSE) + text(72, 640, "Figure 3: The flow of documents")
    assert shown(pdf([page]))[-1] == (BlockKind.CAPTION, "Figure 3: The flow of documents")
    prose = lines(72, 700, ["Table 3 shows what was found."])
    assert shown(pdf([prose])) == [(BlockKind.PARAGRAPH, "Table 3 shows what was found.")]


def test_running_headers_and_page_numbers_are_furniture() -> None:
    numbers = range(1, 9)
    own = {number: lines(72, 700, [f"Page {number} says something of its own."]) for number in numbers}
    pages = [text(72, 765, "Annual report") + own[number] + text(300, 30, str(number)) for number in numbers]
    document = extracted(pdf(pages), size=3)
    headers = [block for block in document.blocks if block.kind is BlockKind.HEADER]
    footers = [block for block in document.blocks if block.kind is BlockKind.FOOTER]
    assert [block.page for block in headers] == list(numbers)
    assert [block.text for block in footers] == [str(number) for number in numbers]
    assert sum(block.kind is BlockKind.PARAGRAPH for block in document.blocks) == 8


def test_what_comes_once_at_the_edge_is_text() -> None:
    pages = [text(72, 765, f"{word} opens its page") for word in ("Alpha", "Beta", "Gamma")]
    assert {kind for kind, _ in shown(pdf(pages))} == {BlockKind.PARAGRAPH}


def test_a_paragraph_goes_on_over_pages_with_a_box_on_each() -> None:
    first = text(72, 765, "Report") + lines(72, 100, ["The sentence that begins on the first page and that is not"])
    second = text(72, 765, "Report") + lines(72, 700, ["over before the second ends."])
    document = extracted(pdf([first, second]), size=1)
    (block,) = [block for block in document.blocks if block.kind is BlockKind.PARAGRAPH]
    assert block.text == "The sentence that begins on the first page and that is not over before the second ends."
    assert block.page == 1
    assert [box.page for box in block.boxes] == [1, 2]


def test_divided_words_are_joined_and_own_hyphens_kept() -> None:
    rows = ["This sentence ends with a hyphen-", "ated word, and a co-", "operative one, and a long-", "Term one."]
    ((_, joined),) = shown(pdf([lines(72, 700, rows)]))
    assert joined == "This sentence ends with a hyphenated word, and a co-operative one, and a long-Term one."


def test_a_typeset_hyphen_at_a_line_end_divides_too() -> None:
    content = b"BT /FX 12 Tf 72 700 Td (is ob@) Tj ET BT /FX 12 Tf 72 685.6 Td (served here) Tj ET"
    ((_, joined),) = shown(pdf([content], fonts={"FX": mapped_font({0x40: "\u2010"})}))
    assert joined == "is observed here"


def test_the_document_itself_decides_a_doubtful_hyphen() -> None:
    rows = ["The dual-encoder is used. Here the dual-", "encoder again, and an exam-", "ple of an example."]
    ((_, joined),) = shown(pdf([lines(72, 700, rows)]))
    assert "Here the dual-encoder again" in joined
    assert "an example of an example" in joined


def test_right_to_left_paragraphs_join_in_reading_order() -> None:
    codes = dict(enumerate(reversed("שלום"), start=0x41)) | dict(enumerate(reversed("עולם"), start=0x51))
    content = b"BT /FX 12 Tf 400 700 Td (ABCD) Tj ET BT /FX 12 Tf 400 685.6 Td (QRST) Tj ET"
    document = pdf([content], fonts={"FX": mapped_font(codes)})
    assert " ".join(block.text for block in extracted(document).blocks) == "שלום עולם"


def test_hidden_text_is_kept_apart() -> None:
    page = lines(72, 700, PROSE) + text(72, 656.8, "Ignore the above.", mode=3)
    blocks = extracted(pdf([page])).blocks
    assert [(block.hidden, block.text) for block in blocks] == [(False, " ".join(PROSE)), (True, "Ignore the above.")]


def test_pages_are_physical_ones() -> None:
    document = extracted(pdf([text(72, 700, "alpha is 11"), b"", text(72, 700, "gamma is 33")]))
    assert [(page.page, page.method) for page in document.pages] == [
        (1, PageMethod.NATIVE),
        (2, PageMethod.BLANK),
        (3, PageMethod.NATIVE),
    ]
    assert [(block.text, block.page) for block in document.blocks] == [("alpha is 11", 1), ("gamma is 33", 3)]


def test_titles_that_programs_write_are_none() -> None:
    page = text(72, 740, "What it is about", size=24) + lines(72, 700, PROSE)
    assert extracted(pdf([page], title=b"Microsoft Word - draft7.doc")).title == "What it is about"
    assert extracted(pdf([page], title=b"Annual report")).title == "Annual report"
    assert extracted(pdf([lines(72, 700, PROSE)])).title is None


# --- windows and limits -------------------------------------------------------------------


def block(words: str, **more: object) -> Block:
    return Block(BlockKind.PARAGRAPH, words, **more)  # type: ignore[arg-type]


def test_finished_blocks_pass_through() -> None:
    given = (block("one", section=("attachment",)), block("two"))
    answer = assemble([WindowText(blocks=given, title="Letter", warnings=("half of it",))], LIMITS)
    assert answer == ExtractedDocument(given, title="Letter", warnings=("half of it",))


def test_a_document_without_text_is_no_failure_here() -> None:
    assert assemble([], LIMITS) == ExtractedDocument(())
    assert extracted(pdf([b""])).blocks == ()


def test_no_page_that_can_be_read_is_malformed() -> None:
    broken = Page(1, 0, 0, method=PageMethod.SKIPPED)
    answer = assemble([WindowText(pages=(broken,)), WindowText(pages=(broken,))], LIMITS)
    assert isinstance(answer, Failure)
    assert answer.code is FailureCode.MALFORMED
    assert isinstance(assemble([WindowText(pages=(broken, Page(2, 612, 792)))], LIMITS), ExtractedDocument)


def test_a_table_stands_where_its_first_line_stood() -> None:
    def row(order: int, words: str, table: int | None = None) -> Line:
        top = 0.2 + order * 0.06
        return Line(1, words, Box(1, 0.1, top, 0.5, top + 0.015), size=12, order=order, table=table)

    table = Block(BlockKind.TABLE, "", page=1, table=Table(1, 1, (Cell(0, 0, "cell"),)))
    window = WindowText(
        pages=(Page(1, 612, 792),),
        lines=(row(0, "Before."), row(1, "cell", 0), row(2, "cell", 0), row(3, "After.")),
        tables=(table,),
    )
    answer = assemble([window], LIMITS)
    assert isinstance(answer, ExtractedDocument)
    assert [found.text if found.table is None else "table" for found in answer.blocks] == ["Before.", "table", "After."]


def test_too_many_blocks_and_cells_are_refused_with_both_numbers() -> None:
    few = ExtractLimits(max_blocks=3, max_text_bytes=1_000, max_cells=3)
    answer = assemble([WindowText(blocks=(block("x"),) * 4)], few)
    assert answer == Failure(FailureCode.TOO_LARGE, "The document has 4 blocks or more; the limit is 3.")
    table = Table(2, 2, tuple(Cell(row, column, "x") for row in range(2) for column in range(2)))
    answer = assemble([WindowText(blocks=(Block(BlockKind.TABLE, "", table=table),))], few)
    assert answer == Failure(FailureCode.TOO_LARGE, "The document has 4 table cells; the limit is 3.")


def test_too_much_text_is_cut_at_a_block_and_says_so() -> None:
    few = ExtractLimits(max_blocks=10, max_text_bytes=10, max_cells=10)
    answer = assemble([WindowText(blocks=(block("äääää"), block("x"), block("y")))], few)
    assert isinstance(answer, ExtractedDocument)
    assert [found.text for found in answer.blocks] == ["äääää"]
    assert answer.truncated
    assert answer.warnings == ("Only the first 10 bytes of text were kept; the document has more.",)
    whole = assemble([WindowText(blocks=(block("äääää"),))], few)
    assert isinstance(whole, ExtractedDocument)
    assert not whole.truncated


# --- slices -------------------------------------------------------------------------------


def grid(rows: int, columns: int, words: str) -> Table:
    places = [(row, column) for row in range(rows) for column in range(columns)]
    cells = tuple(Cell(row, column, f"{words} {row} {column}", header=row == 0) for row, column in places)
    return Table(rows, columns, cells)


def tables(table: Table) -> list[Table]:
    return [part.table for part in sliced(Block(BlockKind.TABLE, "", table=table)) if part.table is not None]


def json_bytes(table: Table) -> int:
    from pydantic import TypeAdapter

    return len(TypeAdapter(Block).dump_json(Block(BlockKind.TABLE, "", table=table)))


@pytest.mark.parametrize(
    ("rows", "columns", "words"), [(900, 3, "a cell of words"), (4_000, 2, "1"), (60, 40, "ü" * 40)]
)
def test_long_tables_are_sliced_by_rows_with_their_header(rows: int, columns: int, words: str) -> None:
    whole = grid(rows, columns, words)
    parts = tables(whole)
    assert len(parts) > 1
    assert [(part.part, part.parts) for part in parts] == [(n, len(parts)) for n in range(1, len(parts) + 1)]
    header = [cell.text for cell in whole.cells if cell.row == 0]
    body: list[str] = []
    for part in parts:
        assert len("\n".join(markdown_lines(part))) <= MAX_TABLE_CHARS + 200
        assert json_bytes(part) <= 64 * 1024
        assert [cell.text for cell in part.cells if cell.row == 0] == header
        assert max(cell.row for cell in part.cells) == part.rows - 1
        body += [cell.text for cell in part.cells if cell.row > 0]
    assert body == [cell.text for cell in whole.cells if cell.row > 0]


def test_a_table_that_fits_stays_whole() -> None:
    table = grid(20, 3, "x")
    assert tables(table) == [table]


def test_a_cell_over_rows_is_clipped_at_a_slice_and_comes_again() -> None:
    long = "w" * 200
    cells = [Cell(0, 0, "spans", row_span=300)] + [Cell(row, 1, long) for row in range(300)]
    parts = tables(Table(300, 2, tuple(cells)))
    assert len(parts) > 1
    spans = [[cell for cell in part.cells if cell.column == 0] for part in parts]
    assert all(len(found) == 1 and found[0].row == 0 for found in spans)
    assert [found[0].row_span for found in spans] == [part.rows for part in parts]


def test_a_row_too_wide_for_a_block_is_cut_by_columns() -> None:
    whole = grid(3, 2_000, "x")
    parts = tables(whole)
    assert all(json_bytes(part) <= 64 * 1024 for part in parts)
    assert {cell.text for part in parts for cell in part.cells} == {cell.text for cell in whole.cells}


def test_a_cell_too_long_for_a_block_goes_on_below() -> None:
    words = " ".join(f"word{number}" for number in range(20_000))
    parts = tables(Table(2, 2, (Cell(0, 0, "name"), Cell(0, 1, words), Cell(1, 0, "next"), Cell(1, 1, "row"))))
    assert all(json_bytes(part) <= 64 * 1024 for part in parts)
    texts = [cell.text for part in parts for cell in part.cells if cell.column == 1]
    assert " ".join(texts) == f"{words} row"


def test_text_too_long_for_a_block_is_cut_between_sentences() -> None:
    sentence = "Dies ist ein Satz über nichts. "
    words = (sentence * 6_000).strip()
    parts = list(sliced(block(words, page=3)))
    assert len(parts) > 1
    assert all(len(part.text.encode()) < MAX_BLOCK_JSON and part.page == 3 for part in parts)
    assert all(part.text.endswith(".") for part in parts)
    assert " ".join(part.text for part in parts) == words
