"""Markdown: what the source says, block by block."""

from __future__ import annotations

import textwrap

import pytest

from pipeline.engines.documents import markdown
from pipeline.types import WindowText
from tests.unit.documents import LIMITS, limits, outline


def read(source: str) -> WindowText:
    return markdown.read_markdown(textwrap.dedent(source).encode(), LIMITS)


def test_headings_and_paragraphs_lose_their_marks() -> None:
    window = read("""\
        # Title with `code`

        Some *emphasised* [linked](http://example.org) text
        in two lines.\\
        A new line. ![A picture](x.png)

        Second level
        ------------

        ###### Sixth ######
        """)
    assert outline(window) == [
        "h1: Title with code",
        "p: Some emphasised linked text in two lines.\nA new line. A picture",
        "h2: Second level",
        "h6: Sixth",
    ]
    assert window.title == "Title with code"


def test_lists_keep_depth_and_numbers() -> None:
    window = read("""\
        3. three
           1. nested
           2. nested too

              more of it
        4. four

           - bullet
        * star
        """)
    assert outline(window) == [
        "li0 3.: three",
        "li1 1.: nested",
        "li1 2.: nested too\nmore of it",
        "li0 4.: four",
        "li1 -: bullet",
        "li0 -: star",
    ]


def test_numbering_goes_on_after_code_and_tables_in_an_item() -> None:
    window = read("""\
        1) one

           ```sh
           1) not an item
           ```

           after

        2) two

           | a | b |
           |---|---|
           | 1 | 2 |
        3) three
        """)
    assert outline(window) == [
        "li0 1): one",
        "code sh: 1) not an item",
        "p: after",
        "li0 2): two",
        "table 2x2: *a | *b / 1 | 2",
        "li0 3): three",
    ]


def test_a_fence_is_opaque() -> None:
    window = read("""\
        ~~~python title="x"
        # not a heading
        | not | a table |

          <div>not html</div>
        ```
        ~~~

            indented *code*
        """)
    assert outline(window) == [
        "code python: # not a heading\n| not | a table |\n\n  <div>not html</div>\n```",
        "code: indented *code*",
    ]


def test_tables_keep_escaped_pipes_and_inline_text() -> None:
    window = read("""\
        | Code | Meaning |
        |:-----|--------:|
        | `ERR-4021` | *pressure* \\| low |
        | ERR-4022 |
        """)
    assert outline(window) == [
        "table 3x2: *Code | *Meaning / ERR-4021 | pressure | low / ERR-4022 | ",
    ]


def test_front_matter_gives_the_title_and_no_text() -> None:
    window = read("""\
        ---
        layout: page
        title: "The pump: a manual"
        ---
        # Heading

        Text
        """)
    assert window.title == "The pump: a manual"
    assert outline(window) == ["h1: Heading", "p: Text"]
    assert read("+++\ntitle = 'Toml'\n+++\ntext").title == "Toml"


def test_a_rule_at_the_beginning_is_no_front_matter() -> None:
    assert outline(read("---\n\ntext\n")) == ["p: text"]
    assert outline(read("----\n\ntitle: x\n\n----\n")) == ["p: title: x"]


def test_html_in_markdown_is_read_as_html() -> None:
    window = read("""\
        <table><tr><th>a</th></tr><tr><td>1</td></tr></table>

        <script>var hidden = 1</script>

        <!-- a comment -->

        Inline <b>bold</b><br>text <!-- comment --> end
        """)
    assert outline(window) == ["table 2x1: *a / 1", "p: Inline bold\ntext  end"]


def test_quoted_text_is_text() -> None:
    assert outline(read("> quoted\n> > deeper\n")) == ["p: quoted", "p: deeper"]


def test_control_characters_and_overrides_are_gone() -> None:
    assert outline(read("a\x00b \u202egnp.exe\u202c")) == ["p: ab gnp.exe"]


def test_a_long_source_is_read_in_parts_with_the_same_result(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "\n".join(f"# Chapter {number}\n\ntext\n\n```\n# code\n```\n" for number in range(200))
    whole = outline(read(source))
    monkeypatch.setattr(markdown, "_PART_CHARS", 300)
    assert outline(read(source)) == whole
    assert len(whole) == 600


def test_reading_stops_after_the_text_limit() -> None:
    window = markdown.read_markdown(b"ten bytes.\n\n" * 100, limits(max_text_bytes=95))
    assert len(window.blocks) == 10
