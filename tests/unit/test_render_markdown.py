"""Markdown written from blocks must read back, by an independent reader, as the same blocks."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipeline.types import Block, BlockKind, Cell, Table
from renderers import markdown

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def words(text: str) -> str:
    return " ".join(text.split())


def shown(token: Token) -> str:
    """The text a reader of the rendered page sees in one inline token."""
    parts: list[str] = []
    for child in token.children or []:
        if child.type in ("text", "text_special"):
            parts.append(child.content)
        elif child.type in ("softbreak", "hardbreak") or child.content == "<br>":
            parts.append("\n")
        else:
            parts.append(f"<<{child.type}>>")
    return words("".join(parts))


def read_back(text: str) -> list[tuple[str, int, str | None, str]]:
    """(kind, level, marker, text) of every block; list items at their depth."""
    found: list[tuple[str, int, str | None, str]] = []
    depth = -1
    markers: list[str] = []
    kind, level = "paragraph", 0
    for token in READER.parse(text):
        if token.type in ("bullet_list_open", "ordered_list_open"):
            depth += 1
        elif token.type in ("bullet_list_close", "ordered_list_close"):
            depth -= 1
        elif token.type == "list_item_open":
            markers.append(f"{token.info}{token.markup}" if token.info else token.markup)
        elif token.type == "list_item_close":
            markers.pop()
        elif token.type == "heading_open":
            kind, level = "heading", int(token.tag[1])
        elif token.type == "heading_close":
            kind, level = "paragraph", 0
        elif token.type in ("th_open", "td_open"):
            kind = token.tag
        elif token.type in ("th_close", "td_close"):
            kind = "paragraph"
        elif token.type in ("fence", "code_block", "html_block", "hr"):
            found.append((token.type, 0, None, token.content.rstrip("\n")))
        elif token.type == "inline":
            item = kind == "paragraph" and depth >= 0
            name = "list_item" if item else kind
            found.append((name, depth if item else level, markers[-1] if item else None, shown(token)))
    return found


# Text made of what Markdown takes for markup, and some words between.
PIECES = (
    "#¦##¦*¦**¦_¦__¦_0_¦`¦```¦~~¦~~~¦>¦-¦+¦---¦- - -¦===¦=¦1.¦12)¦|¦|---|¦:-:¦[¦]¦(¦)¦](x)¦[a]: b¦![¦<b>¦</p>¦<!--"
    "¦<http://a.b>¦&amp;¦&#35;¦\\¦\\|¦!¦word¦snake_case¦5 * 3¦a¦é¦水¦ ¦  ¦\t¦\n¦C:\\dir¦~5"
)
markup = st.lists(st.sampled_from(PIECES.split("¦")), min_size=1, max_size=8).map("".join)
anything = st.one_of(
    markup, st.text(st.characters(exclude_categories=["C", "Z"], include_characters=" \n"), max_size=30)
)


@settings(max_examples=400, deadline=None)
@given(anything)
def test_a_paragraph_reads_back_as_its_text(text: str) -> None:
    rendered = markdown.render([Block(BlockKind.PARAGRAPH, text)])
    assert read_back(rendered) == ([("paragraph", 0, None, words(text))] if text.strip() else [])


@settings(max_examples=200, deadline=None)
@given(anything, st.integers(1, 6))
def test_a_heading_reads_back_as_its_text_and_level(text: str, level: int) -> None:
    rendered = markdown.render([Block(BlockKind.HEADING, text, level)])
    assert read_back(rendered) == ([("heading", level, None, words(text))] if text.strip() else [])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(anything, min_size=2, max_size=2), min_size=2, max_size=3))
def test_table_cells_read_back(rows: list[list[str]]) -> None:
    cells = tuple(Cell(r, c, text, header=r == 0) for r, row in enumerate(rows) for c, text in enumerate(row))
    rendered = markdown.render([Block(BlockKind.TABLE, "", table=Table(len(rows), 2, cells))])
    expected = [("th" if r == 0 else "td", 0, None, words(text)) for r, row in enumerate(rows) for text in row]
    assert read_back(rendered) == (expected if any(text.strip() for row in rows for text in row) else [])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["-", "1.", "3.", "12)", "7)"]), anything.filter(str.strip)),
        min_size=1,
        max_size=6,
    )
)
def test_list_items_read_back_at_their_depth(items: list[tuple[int, str, str]]) -> None:
    blocks = [Block(BlockKind.LIST_ITEM, text, level, marker=marker) for level, marker, text in items]
    found = read_back(markdown.render(blocks))
    assert [(kind, text) for kind, _, _, text in found] == [("list_item", words(text)) for _, _, text in items]
    open_levels: list[int] = []
    for (level, _, _), (_, depth, _, _) in zip(items, found, strict=True):
        while open_levels and open_levels[-1] >= level:
            open_levels.pop()
        assert depth == len(open_levels)
        open_levels.append(level)


def test_nested_lists_keep_numbers_and_depth() -> None:
    blocks = [
        Block(BlockKind.LIST_ITEM, "first", 0, marker="10."),
        Block(BlockKind.LIST_ITEM, "inner", 1, marker="•"),
        Block(BlockKind.LIST_ITEM, "deep\nline two", 2, marker="3."),
        Block(BlockKind.LIST_ITEM, "second", 0, marker="11."),
        Block(BlockKind.LIST_ITEM, "lettered", 0, marker="(iv)"),
    ]
    assert read_back(markdown.render(blocks)) == [
        ("list_item", 0, "10.", "first"),
        ("list_item", 1, "-", "inner"),
        ("list_item", 2, "3.", "deep line two"),
        ("list_item", 0, "11.", "second"),
        ("list_item", 0, "-", "(iv) lettered"),
    ]


@pytest.mark.parametrize("code", ["x = 1", "```\ninside\n```", "a ```` b", "    indented\n\n# not a heading", "`"])
def test_code_reads_back_whatever_fences_it_holds(code: str) -> None:
    assert read_back(markdown.render([Block(BlockKind.CODE, code)])) == [("fence", 0, None, code)]


def test_spans_are_kept_in_an_html_table() -> None:
    cells = (
        Cell(0, 0, "Wide <b>", column_span=2, header=True),
        Cell(1, 0, "tall\n\nline", row_span=2),
        Cell(1, 1, "a | b"),
        Cell(2, 1, "c"),
    )
    rendered = markdown.render([Block(BlockKind.TABLE, "", table=Table(3, 2, cells))])
    [(kind, _, _, content)] = read_back(rendered)
    assert kind == "html_block"
    assert '<th colspan="2">Wide &lt;b&gt;</th>' in content
    assert '<td rowspan="2">tall<br><br>line</td><td>a | b</td>' in content
    assert html.unescape(re.sub(r"<[^>]+>", " ", content)).split() == [
        "Wide",
        "<b>",
        "tall",
        "line",
        "a",
        "|",
        "b",
        "c",
    ]


def test_a_slice_of_a_long_table_says_which_it_is() -> None:
    table = Table(2, 1, (Cell(0, 0, "h", header=True), Cell(1, 0, "v")), part=2, parts=5)
    assert markdown.render([Block(BlockKind.TABLE, "", table=table)]) == "(part 2 of 5)\n\n| h |\n| --- |\n| v |\n"


def test_what_is_not_body_is_left_out_and_a_description_is_labelled() -> None:
    blocks = [
        Block(BlockKind.HEADER, "running head"),
        Block(BlockKind.PARAGRAPH, "body"),
        Block(BlockKind.PARAGRAPH, "white on white", hidden=True),
        Block(BlockKind.DESCRIPTION, "A chart\nof sales"),
        Block(BlockKind.FOOTER, "page 3"),
    ]
    assert markdown.render(blocks) == "body\n\n> Description of an image:\n> A chart\n> of sales\n"
    assert markdown.render([]) == ""


def test_ordinary_text_is_not_disturbed() -> None:
    text = "The price (in EUR) of snake_case items is 5 * 3 = 15 [1]; see C:\\dir, AT&T, a < b & c > d, ~5% - or 1.5."
    assert markdown.render([Block(BlockKind.PARAGRAPH, text)]) == text + "\n"
