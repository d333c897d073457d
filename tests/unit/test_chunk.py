"""Chunks follow the structure of the document and never exceed their limit."""

from __future__ import annotations

import hashlib
import time
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines import tokenizer
from pipeline.stages import tables
from pipeline.stages.chunk import ChunkLimits, StructureAwareChunker
from pipeline.types import Block, BlockKind, Box, Cell, Chunk, ChunkKind, PageMethod, Table


@cache
def pinned() -> tokenizer.WordPiece:
    return tokenizer.pinned()


def chunker(tokens: int = 256, path_tokens: int = 64) -> StructureAwareChunker:
    return StructureAwareChunker(pinned().count, ChunkLimits(tokens, path_tokens), tokenizer=pinned().version)


def heading(text: str, level: int = 1, **more: object) -> Block:
    return Block(BlockKind.HEADING, text, level, **more)  # type: ignore[arg-type]


def paragraph(text: str, **more: object) -> Block:
    return Block(BlockKind.PARAGRAPH, text, **more)  # type: ignore[arg-type]


def item(text: str, level: int = 0, marker: str = "-") -> Block:
    return Block(BlockKind.LIST_ITEM, text, level, marker=marker)


def grid(rows: list[list[str]], headers: int = 1, **more: object) -> Block:
    cells = tuple(Cell(r, c, text, header=r < headers) for r, row in enumerate(rows) for c, text in enumerate(row))
    return Block(BlockKind.TABLE, "", table=Table(len(rows), len(rows[0]), cells), **more)  # type: ignore[arg-type]


def contents(chunks: tuple[Chunk, ...]) -> list[str]:
    return [chunk.content for chunk in chunks]


def squeezed(text: str) -> str:
    return "".join(text.split())


# --- properties ---

words = st.one_of(
    st.sampled_from(
        ["alpha", "beta.", "Gamma", "ERR-4021", "水は", "深い。", "|", "a" * 130, "é́", "👩‍👩‍👧", "[SEP]", "1,234.5"]
    ),
    st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=12),
)
texts = st.lists(words, max_size=40).map(" ".join)
long_texts = st.tuples(words, st.integers(1, 200), st.sampled_from(["", " ", "\n", ". "])).map(
    lambda t: (t[0] + t[2]) * t[1]
)
any_text = st.one_of(texts, long_texts)
sections = st.sampled_from([(), (), ("Notes",), ("mail.eml", "a.docx")])
text_blocks = st.builds(
    Block,
    kind=st.sampled_from([kind for kind in BlockKind if kind not in (BlockKind.HEADING, BlockKind.TABLE)]),
    text=any_text,
    level=st.integers(0, 3),
    section=sections,
    slide=st.sampled_from([None, None, 1, 2]),
    hidden=st.sampled_from([False, False, False, True]),
)
heading_blocks = st.builds(
    Block, kind=st.just(BlockKind.HEADING), text=st.one_of(texts, words), level=st.integers(1, 6), section=sections
)


@st.composite
def table_blocks(draw: st.DrawFn) -> Block:
    rows, columns, headers = draw(st.integers(1, 8)), draw(st.integers(1, 5)), draw(st.integers(0, 2))
    cell = st.one_of(st.sampled_from(["", "7", "cell text"]), any_text)
    cells = tuple(
        Cell(r, c, draw(cell), draw(st.integers(1, 2)), draw(st.integers(1, 2)), r < headers)
        for r in range(rows)
        for c in range(columns)
    )
    return Block(BlockKind.TABLE, "", table=Table(rows, columns, cells), section=draw(sections))


documents = st.lists(st.one_of(text_blocks, text_blocks, heading_blocks, table_blocks()), max_size=14)


def is_body(block: Block) -> bool:
    return not block.hidden and block.kind not in (BlockKind.HEADER, BlockKind.FOOTER, BlockKind.HEADING)


@settings(max_examples=30, deadline=None)
@given(documents, st.sampled_from([(256, 64), (64, 16), (40, 8)]))
def test_no_chunk_is_over_the_limit(blocks: list[Block], limits: tuple[int, int]) -> None:
    for chunk in chunker(*limits).split(blocks):
        assert pinned().count(chunk.indexed_text) == chunk.token_count <= limits[0]
        assert len(chunk.indexed_text) <= 16 * limits[0] + 2
        assert pinned().count(" > ".join(chunk.heading_path)) <= limits[1]
        assert chunk.content.strip()


@settings(max_examples=30, deadline=None)
@given(documents)
def test_ordinals_hashes_and_ranges(blocks: list[Block]) -> None:
    chunks = chunker().split(blocks)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    assert chunks == chunker().split(blocks)
    for chunk in chunks:
        assert chunk.content_hash == hashlib.sha256(chunk.indexed_text.encode()).hexdigest()
        assert 0 <= chunk.first_block <= chunk.last_block < len(blocks)


@settings(max_examples=30, deadline=None)
@given(documents)
def test_the_text_of_every_block_is_in_the_chunks_in_order(blocks: list[Block]) -> None:
    chunks = chunker().split(blocks)
    for number, block in enumerate(blocks):
        if not is_body(block) or block.table is not None:
            continue
        covering = [c.content for c in chunks if c.first_block <= number <= c.last_block]
        whole = squeezed("".join(covering))
        assert squeezed(block.text) in whole


@settings(max_examples=30, deadline=None)
@given(table_blocks())
def test_the_text_of_every_cell_is_in_the_pieces(block: Block) -> None:
    assert block.table is not None
    found = [squeezed(chunk.content.replace("\\|", "|")) for chunk in chunker(64, 16).split([block])]
    whole = "".join(found)
    for row in tables.grid(block.table):
        for cell in row:
            for word in cell.replace("|", " ").split():
                assert squeezed(word)[:20] in whole


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(texts, min_size=3, max_size=3), min_size=8, max_size=30), st.integers(1, 2))
def test_every_piece_of_a_table_begins_with_its_header(rows: list[list[str]], headers: int) -> None:
    names = [["Product", "Price in EUR", "Stock"], ["name", "net", "pieces"]][:headers]
    for piece in chunker(128, 32).split([grid(names + rows, headers)]):
        top = piece.content.split("\n")
        # A row that does not fit beside the whole header stands below the names of its own columns.
        columns = [column for column, name in enumerate(names[0]) if name in top[0]]
        assert columns
        assert top[0] == tables.pipe_row([names[0][column] for column in columns])
        assert top[1] == "|" + "-|" * len(columns)
        if headers == 2:
            assert top[2] == tables.pipe_row([names[1][column] for column in columns])


# --- headings ---


def test_headings_are_a_path_and_never_a_chunk() -> None:
    blocks = [
        heading("Report"),
        heading("By region", 2),
        paragraph("Revenue rose 9%."),
        heading("Outlook", 2),
        paragraph("Calm."),
    ]
    chunks = chunker().split(blocks)
    assert [(c.heading_path, c.content) for c in chunks] == [
        (("Report", "By region"), "Revenue rose 9%."),
        (("Report", "Outlook"), "Calm."),
    ]
    assert chunks[0].indexed_text == "Report > By region\nRevenue rose 9%."
    assert (chunks[0].first_block, chunks[0].last_block) == (2, 2)


def test_a_heading_without_text_joins_the_next_path() -> None:
    blocks = [
        heading("Annual Report"),
        heading("2025"),
        heading("Acme"),
        paragraph("Text."),
        heading("Next"),
        paragraph("More."),
    ]
    assert [c.heading_path for c in chunker().split(blocks)] == [("Annual Report", "2025", "Acme"), ("Next",)]


def test_a_last_heading_joins_the_last_chunk() -> None:
    chunks = chunker().split([heading("A"), paragraph("Text."), heading("Thank you")])
    assert contents(chunks) == ["Text.\n\nThank you"]
    assert chunks[0].last_block == 2


def test_a_last_heading_after_a_full_chunk_is_not_lost() -> None:
    full = "word " * 255
    assert contents(chunker().split([paragraph(full), heading("Thank you")]))[-1] == "Thank you"


def test_a_document_of_headings_is_one_chunk_of_text() -> None:
    chunks = chunker().split([heading("One"), heading("Two", 2), heading("Three", 2)])
    assert [(c.kind, c.heading_path, c.content) for c in chunks] == [(ChunkKind.TEXT, (), "One\n\nTwo\n\nThree")]


def test_many_headings_without_text_are_text() -> None:
    chunks = chunker().split(
        [heading("Deck"), *(heading(f"Slide title number {n}", 2) for n in range(30)), paragraph("End.")]
    )
    whole = " ".join(chunk.indexed_text for chunk in chunks)
    assert all(f"Slide title number {n}" in whole for n in range(30))


def test_a_long_path_keeps_its_last_levels() -> None:
    levels = [f"level {n} " + "word " * 20 for n in range(1, 6)]
    [chunk] = chunker().split([*(heading(text, n) for n, text in enumerate(levels, 1)), paragraph("Body.")])
    assert chunk.heading_path == tuple(text.strip() for text in levels[-2:])


def test_one_heading_longer_than_a_path_is_cut_between_words() -> None:
    [chunk] = chunker().split([heading("very " * 200), paragraph("Body.")])
    assert len(chunk.heading_path) == 1
    assert 50 <= pinned().count(chunk.heading_path[0]) <= 64
    assert set(chunk.heading_path[0].split()) == {"very"}


def test_parts_of_a_document_have_their_own_headings() -> None:
    blocks = [
        heading("Subject"),
        paragraph("Mail body."),
        heading("Inside", section=("a.docx",)),
        paragraph("Attached.", section=("a.docx",)),
        paragraph("Back in the mail."),
    ]
    assert [c.heading_path for c in chunker().split(blocks)] == [("Subject",), ("a.docx", "Inside"), ("Subject",)]


# --- packing ---


def test_a_short_last_block_is_repeated() -> None:
    blocks = [paragraph("alpha " * 150), paragraph("The short one."), paragraph("beta " * 200)]
    first, second = contents(chunker().split(blocks))
    assert first.endswith("\n\nThe short one.")
    assert second.startswith("The short one.\n\nbeta")


def test_a_long_last_block_is_not_repeated() -> None:
    blocks = [paragraph("alpha " * 100), paragraph("gamma " * 80), paragraph("beta " * 120)]
    first, second = contents(chunker().split(blocks))
    assert "gamma" in first
    assert "gamma" not in second


def test_nothing_is_repeated_across_headings_or_from_tables() -> None:
    blocks = [paragraph("Short."), grid([["h"], ["v"]]), paragraph("After."), heading("Next"), paragraph("Text.")]
    assert contents(chunker().split(blocks)) == ["Short.", "| h |\n|-|\n| v |", "After.", "Text."]


def test_list_items_stay_together_with_their_marker_and_depth() -> None:
    blocks = [paragraph("Choose:"), item("one", marker="1."), item("inner", 1, "•"), item("two", marker="2.")]
    assert contents(chunker().split(blocks)) == ["Choose:\n\n1. one\n  • inner\n2. two"]


def test_a_list_moves_on_whole_with_its_introduction() -> None:
    entries = [item(f"entry number {n} of the list", marker=f"{n}.") for n in range(12)]
    chunks = chunker().split([paragraph("alpha " * 160), paragraph("Choose one of:"), *entries])
    assert len(chunks) == 2
    assert chunks[1].content.startswith("Choose one of:\n\n0. entry number 0")
    assert chunks[1].content.endswith("11. entry number 11 of the list")


def test_a_long_paragraph_is_cut_between_sentences() -> None:
    sentences = [f"Sentence number {n} says something of its own about the matter." for n in range(60)]
    pieces = contents(chunker().split([paragraph(" ".join(sentences))]))
    assert len(pieces) > 2
    assert all(piece.endswith("matter.") and piece.startswith("Sentence") for piece in pieces)
    assert " ".join(pieces).split() == " ".join(sentences).split()


def test_a_word_without_end_is_cut_between_characters() -> None:
    cluster = "é́"  # one letter, two marks
    pieces = contents(chunker().split([paragraph(cluster * 6000)]))
    assert len(pieces) > 1
    assert "".join(pieces) == cluster * 6000
    assert all(piece.startswith(("e", "é")) for piece in pieces)


@pytest.mark.parametrize(
    "text", ["x" * 300_000, "水" * 300_000, "word " * 60_000, "a" + "\u0301" * 300_000, "!" * 300_000]
)
def test_time_is_linear_for_a_text_that_is_one_token(text: str) -> None:
    started = time.process_time()
    chunks = chunker().split([paragraph(text)])
    assert time.process_time() - started < 8
    assert squeezed("".join(contents(chunks))) == squeezed(text)


# --- tables and code ---


def test_a_table_is_whole_when_it_fits() -> None:
    chunks = chunker().split([heading("Prices"), grid([["Item", "EUR"], ["Pump", "12,50"], ["A|B", "3\n4"]])])
    assert [(c.kind, c.content) for c in chunks] == [
        (ChunkKind.TABLE, "| Item | EUR |\n|-|-|\n| Pump | 12,50 |\n| A\\|B | 3 4 |")
    ]


def test_a_long_table_is_cut_by_rows_and_says_which() -> None:
    rows = [[f"item {n}", f"{n}.00 EUR", "in stock"] for n in range(60)]
    blocks = [
        Block(BlockKind.CAPTION, "Table 3: prices", page=2),
        grid([["Item", "Price", "Stock"], *rows], sheet="Prices", cells="B3:D63", page=3),
    ]
    chunks = chunker().split(blocks)
    assert len(chunks) > 2
    for chunk in chunks:
        assert chunk.content.startswith("Table 3: prices\n\n| Item | Price | Stock |\n|-|-|-|\n| item")
        assert (chunk.location.pages, chunk.location.sheet) == ((2, 3), "Prices")
    first, second = chunks[0].location.cells, chunks[1].location.cells
    assert first is not None
    assert second is not None
    assert first.startswith("B4:D")
    assert int(second[1:].split(":")[0]) == int(first.split("D")[1]) + 1
    assert [line for c in chunks for line in c.content.split("\n")[4:]] == [tables.pipe_row(row) for row in rows]


def test_a_table_without_marked_header_repeats_its_first_row() -> None:
    rows = [["Item", "Price"], *([f"item {n}", f"price {n}"] for n in range(80))]
    chunks = chunker().split([grid(rows, headers=0)])
    assert len(chunks) > 1
    assert all(chunk.content.startswith("| Item | Price |\n|-|-|\n| item") for chunk in chunks)


def test_a_wide_table_is_cut_by_columns_with_the_first_one_as_key() -> None:
    names = ["Region", *(f"Column about matter {n}" for n in range(60))]
    rows = [[f"Region {r}", *(f"value {r}-{n}" for n in range(60))] for r in range(3)]
    chunks = chunker().split([grid([names, *rows])])
    for chunk in chunks:
        assert chunk.content.startswith("| Region | Column about matter")
    whole = "\n".join(contents(chunks))
    assert all(cell in whole for row in rows for cell in row)


def test_a_cell_that_does_not_fit_is_cut_below_its_column() -> None:
    essay = " ".join(f"Remark {n} is a sentence." for n in range(200))
    chunks = chunker().split([grid([["Key", "Remarks", "Left blank"], ["K-1", essay, ""]])])
    assert chunks[-1].content == "| Left blank |\n|-|\n|  |"
    chunks = chunks[:-1]
    assert chunks[0].content.startswith("| Key |\n|-|\n| K-1 |")
    assert all(c.content.startswith("| Remarks |\n|-|\n| Remark") for c in chunks[1:])
    assert " ".join(c.content.split("\n")[2][2:-2] for c in chunks[1:]) == essay


def test_spans_say_in_every_row_what_it_belongs_to() -> None:
    cells = (
        Cell(0, 0, "Price list", column_span=3, header=True),
        Cell(1, 0, "Region", header=True),
        Cell(1, 1, "Sales", column_span=2, header=True),
        Cell(2, 0, "Europe", row_span=2),
        Cell(2, 1, "1"),
        Cell(2, 2, "2"),
        Cell(3, 1, "both", column_span=2),
    )
    [chunk] = chunker().split([Block(BlockKind.TABLE, "", table=Table(4, 3, cells))])
    assert chunk.content.split("\n") == [
        "| Price list |  |  |",
        "|-|-|-|",
        "| Region | Sales | Sales |",
        "| Europe | 1 | 2 |",
        "| Europe | both |  |",
    ]


def test_captions_belong_to_the_nearer_table_and_else_are_text() -> None:
    table = grid([["h"], ["v"]])
    first, second, last = (
        Block(BlockKind.CAPTION, "T1"),
        Block(BlockKind.CAPTION, "T2"),
        Block(BlockKind.CAPTION, "Figure 9"),
    )
    chunks = chunker().split([first, table, second, table, paragraph("Text."), last])
    assert contents(chunks) == ["T1\n\n| h |\n|-|\n| v |", "T2\n\n| h |\n|-|\n| v |", "Text.\n\nFigure 9"]
    [below] = chunker().split([table, first])
    assert below.content == "| h |\n|-|\n| v |\n\nT1"


def test_code_is_cut_between_lines_and_keeps_its_indentation() -> None:
    lines = [f"    result_{n} = compute({n}, scale=2)" for n in range(80)]
    chunks = chunker().split([Block(BlockKind.CODE, "\n".join(["def f():", *lines]) + "\n")])
    assert {chunk.kind for chunk in chunks} == {ChunkKind.CODE}
    assert len(chunks) > 2
    assert "\n".join(contents(chunks)).split("\n") == ["def f():", *lines]


# --- what is left out, and where it stands ---


def test_furniture_hidden_and_empty_blocks_are_left_out() -> None:
    blocks = [
        Block(BlockKind.HEADER, "running head"),
        paragraph("Body."),
        paragraph("white on white", hidden=True),
        heading("invisible", hidden=True),
        paragraph(" \n"),
        grid([["", " "]]),
        Block(BlockKind.FOOTER, "page 3"),
        paragraph("More."),
    ]
    chunks = chunker().split(blocks)
    assert contents(chunks) == ["Body.\n\nMore."]
    assert (chunks[0].first_block, chunks[0].last_block) == (1, 7)
    assert chunker().split([]) == ()


def test_location_confidence_and_method() -> None:
    blocks = [
        paragraph("Read text.", page=1, boxes=(Box(1, 0.1, 0.1, 0.5, 0.2), Box(1, 0.2, 0.3, 0.9, 0.4))),
        paragraph("abcde", page=2, boxes=(Box(2, 0, 0, 1, 1),), method=PageMethod.OCR, confidence=0.9),
        paragraph("a" * 15, page=2, method=PageMethod.OCR, confidence=0.5),
    ]
    [chunk] = chunker().split(blocks)
    assert chunk.location.pages == (1, 2)
    assert chunk.location.boxes == (Box(1, 0.1, 0.1, 0.9, 0.4), Box(2, 0, 0, 1, 1))
    assert chunk.method is PageMethod.MIXED
    assert chunk.confidence == pytest.approx(0.6)
    [native] = chunker().split(blocks[:1])
    assert (native.method, native.confidence) == (PageMethod.NATIVE, None)


def test_slides_sheets_and_descriptions_do_not_mix() -> None:
    blocks = [
        paragraph("First.", slide=1),
        paragraph("Second.", slide=2),
        Block(BlockKind.DESCRIPTION, "A chart.", slide=2, method=PageMethod.VISION),
    ]
    chunks = chunker().split(blocks)
    assert [(c.location.slide, c.kind) for c in chunks] == [
        (1, ChunkKind.TEXT),
        (2, ChunkKind.TEXT),
        (2, ChunkKind.DESCRIPTION),
    ]


def test_the_version_names_tokenizer_rules_and_limits() -> None:
    assert chunker().version == f"structure-1/{tokenizer.PINNED_SHA256[:12]}/256-64"
    with pytest.raises(ValueError, match="half"):
        ChunkLimits(tokens=100, path_tokens=51)


def test_a_language_all_blocks_share_is_kept() -> None:
    assert chunker().split([paragraph("a", language="de"), paragraph("b")])[0].metadata == {"language": "de"}
    assert chunker().split([paragraph("a", language="de"), paragraph("b", language="en")])[0].metadata == {}
