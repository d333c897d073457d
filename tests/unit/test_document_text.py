"""Plain text and its encodings, CSV and TSV."""

from __future__ import annotations

import pytest

from pipeline.engines import media
from pipeline.engines.documents.charset import decode
from pipeline.engines.documents.sink import MAX_BLOCK_CHARS, Refused
from pipeline.engines.documents.tabular import read_tabular
from pipeline.engines.documents.text import read_text
from pipeline.errors import FailureCode
from pipeline.types import BlockKind, WindowText
from tests.unit.documents import LIMITS, limits, outline

RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. "


def table(text: str | bytes, media_type: str = media.CSV) -> WindowText:
    return read_tabular(text if isinstance(text, bytes) else text.encode(), media_type, LIMITS)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\xef\xbb\xbfplain", "plain"),
        ("Größe".encode(), "Größe"),
        ("Größe".encode("utf-16"), "Größe"),
        (b"\xfe\xff" + "Größe".encode("utf-16-be"), "Größe"),
        ("Größe".encode("utf-32"), "Größe"),
        ("Größe – 5 €".encode("cp1252"), "Größe – 5 €"),
        # Bytes that windows-1252 leaves undefined are what browsers make of them.
        (b"caf\xe9 \x81", "café \x81"),
        ((RUSSIAN * 3).encode("cp1251"), RUSSIAN * 3),
        (
            "名前,年齢,住所\n佐藤太郎,30,東京\n三木英子,25,大阪\n".encode("cp932"),
            "名前,年齢,住所\n佐藤太郎,30,東京\n三木英子,25,大阪\n",
        ),
        # One broken byte does not make another encoding of a text that is UTF-8 everywhere else.
        (("Größe – " * 40).encode() + b"\xff!", "Größe – " * 40 + "\ufffd!"),
        ("Größe".encode()[:-3], "Gr\u00f6"),
    ],
)
def test_encodings(data: bytes, expected: str) -> None:
    assert decode(data) == expected


def test_valid_utf8_beats_a_declared_charset_and_an_unknown_one_is_ignored() -> None:
    assert decode("Größe".encode(), "iso-8859-1") == "Größe"
    assert decode("Съешь".encode("koi8-r"), "koi8-r") == "Съешь"
    for nonsense in ("no-such-charset", "hex", "rot13", "undefined", "idna", "\x00", ""):
        assert decode("Größe".encode("cp1252"), nonsense) == "Größe"


def test_paragraphs_are_parted_by_blank_lines() -> None:
    window = read_text(b"First line\r\nsecond line\r\n\r\n  \r\nNext\x00 paragraph\r\n\r\n", LIMITS)
    assert outline(window) == ["p: First line\nsecond line", "p: Next paragraph"]


def test_a_long_paragraph_is_cut_without_losing_a_word() -> None:
    words = [f"word{number}" for number in range(5_000)]
    window = read_text(" ".join(words).encode(), LIMITS)
    assert len(window.blocks) > 3
    assert all(len(block.text) <= MAX_BLOCK_CHARS for block in window.blocks)
    assert " ".join(block.text for block in window.blocks).split() == words


def test_reading_stops_right_after_the_text_limit() -> None:
    window = read_text(b"ten bytes.\n\n" * 100, limits(max_text_bytes=95))
    assert len(window.blocks) == 10


def test_too_many_blocks_are_refused_with_the_limit() -> None:
    with pytest.raises(Refused) as caught:
        read_text(b"a\n\n" * 20, limits(max_blocks=10))
    assert caught.value.failure.code is FailureCode.TOO_LARGE
    assert "10 blocks" in caught.value.failure.detail


def test_a_semicolon_outvotes_the_decimal_comma() -> None:
    window = table("\ufeffName;Region;Units\nWidget;EU;1,5\nGadget;US;7\n")
    assert outline(window) == ["table 3x3: *Name | *Region | *Units / Widget | EU | 1,5 / Gadget | US | 7"]


@pytest.mark.parametrize(
    ("delimiter", "media_type"), [(",", media.CSV), ("\t", media.CSV), ("|", media.CSV), ("\t", media.TSV)]
)
def test_delimiters(delimiter: str, media_type: str) -> None:
    rows = [["id", "text"], ["00123", "a b"], ["NA", "x"]]
    window = table("\n".join(delimiter.join(row) for row in rows), media_type)
    assert outline(window) == ["table 3x2: *id | *text / 00123 | a b / NA | x"]


def test_a_comma_in_tab_separated_text_is_text() -> None:
    assert outline(table("a, b\tc, d\n1, 2\t3, 4\n", media.TSV)) == ["table 2x2: *a, b | *c, d / 1, 2 | 3, 4"]


def test_quoted_cells_keep_delimiters_quotes_and_line_ends() -> None:
    window = table('name,note\r\n"Smith, J.","said ""no""\r\nand left"\r\n')
    assert outline(window) == ['table 2x2: *name | *note / Smith, J. | said "no"\nand left']


def test_excels_hint_names_the_delimiter_and_is_no_row() -> None:
    assert outline(table("sep=;\na;b\n1;2\n")) == ["table 2x2: *a | *b / 1 | 2"]


def test_lone_cells_above_the_header_are_captions() -> None:
    window = table("Progress report,,\n\nTask,Owner,Due\nDesign,Ana,May\n")
    assert outline(window) == ["caption: Progress report", "table 2x3: *Task | *Owner | *Due / Design | Ana | May"]


def test_a_single_column_is_a_table_of_one() -> None:
    assert outline(table("name\nAna\nBo\n")) == ["table 3x1: *name / Ana / Bo"]


def test_ragged_rows_and_blank_cells() -> None:
    window = table("a,b,c\n1\n,2,,4\n\n")
    assert outline(window) == ["table 3x4: *a | *b | *c / 1 / 2 | 4"]
    assert window.blocks[0].table is not None
    assert [(cell.row, cell.column) for cell in window.blocks[0].table.cells][-2:] == [(2, 1), (2, 3)]


def test_the_cell_limit_names_count_and_limit() -> None:
    with pytest.raises(Refused) as caught:
        read_tabular(b"a,b\n" * 10, media.CSV, limits(max_cells=15))
    assert caught.value.failure.code is FailureCode.TOO_LARGE
    assert "16" in caught.value.failure.detail
    assert "15" in caught.value.failure.detail


def test_one_very_wide_row_counts_as_the_grid_it_makes() -> None:
    with pytest.raises(Refused):
        read_tabular(b"a,b\n" * 100 + b"x," * 1_000 + b"x\n", media.CSV, limits(max_cells=50_000))


def test_a_quote_that_never_ends_is_text_or_malformed_but_ends() -> None:
    assert outline(table('a,b\n"1,2\n3,4\n')) == ["table 2x2: *a | *b / 1,2\n3,4"]
    with pytest.raises(Refused) as caught:
        read_tabular(b'a,b\n"' + b"x" * 2_000, media.CSV, limits(max_text_bytes=1_000))
    assert caught.value.failure.code is FailureCode.MALFORMED


def test_nothing_gives_nothing() -> None:
    assert table("").blocks == ()
    assert table(",,\n,,\n").blocks == ()
    assert read_text(b"\n \n\x00", LIMITS).blocks == ()


def test_a_table_has_no_text_of_its_own() -> None:
    block = table("a,b\n1,2\n").blocks[0]
    assert block.kind is BlockKind.TABLE
    assert block.text == ""
