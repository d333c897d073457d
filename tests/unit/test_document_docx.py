"""Word documents as the final text reads."""

from __future__ import annotations

import io

import pytest

from pipeline.engines.documents.docx import check_docx, read_docx
from pipeline.engines.documents.sink import Refused
from pipeline.errors import Failure, FailureCode
from pipeline.types import WindowText
from tests.inputs import word, zips
from tests.inputs.compound import compound
from tests.inputs.word import paragraph
from tests.unit.documents import LIMITS, limits, outline


def read(data: bytes) -> WindowText:
    window = read_docx(io.BytesIO(data), LIMITS)
    assert isinstance(window, WindowText), window
    return window


def body(xml: str, **more: str) -> list[str]:
    return outline(read(word.document(xml, **more)))


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{paragraph(text)}</w:tc>"


def row(*cells: str, properties: str = "") -> str:
    return f"<w:tr><w:trPr>{properties}</w:trPr>{''.join(cells)}</w:tr>"


def level(number: int, form: str, text: str, more: str = "") -> str:
    start = f'<w:start w:val="1"/><w:numFmt w:val="{form}"/>{more}<w:lvlText w:val="{text}"/>'
    return f'<w:lvl w:ilvl="{number}">{start}</w:lvl>'


def item(text: str, depth: int = 0, list_id: int = 1) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{depth}"/><w:numId w:val="{list_id}"/></w:numPr>')


LISTS = (
    '<w:abstractNum w:abstractNumId="0">'
    + level(0, "decimal", "%1.")
    + level(1, "lowerLetter", "%1.%2)")
    + level(2, "bullet", "\uf0b7")
    + '</w:abstractNum><w:abstractNum w:abstractNumId="1">'
    + level(0, "upperRoman", "Article %1", '<w:pStyle w:val="Article"/>')
    + level(1, "none", "")
    + "</w:abstractNum>"
    '<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="0"/>'
    '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="7"/></w:lvlOverride></w:num>'
    '<w:num w:numId="3"><w:abstractNumId w:val="1"/></w:num>'
)


def test_tracked_insertions_are_text_and_deletions_are_not() -> None:
    xml = (
        f"<w:p>{run('The fee is ')}<w:del w:id='1'><w:r><w:delText>OLD100</w:delText></w:r></w:del>"
        f"<w:ins w:id='2'>{run('NEW250')}</w:ins>{run(' euros.')}"
        f"<w:moveFrom w:id='3'>{run('gone')}</w:moveFrom><w:moveTo w:id='4'>{run(' here')}</w:moveTo></w:p>"
    )
    assert body(xml) == ["p: The fee is NEW250 euros. here"]


def test_a_deleted_paragraph_end_joins_two_paragraphs() -> None:
    first = f"<w:p><w:pPr><w:rPr><w:del w:id='1'/></w:rPr></w:pPr>{run('one ')}</w:p>"
    assert body(first + paragraph("two") + paragraph("three")) == ["p: one two", "p: three"]


def test_headings_by_style_and_outline_level_are_never_deeper_than_six() -> None:
    headings = "".join(paragraph(f"H{each}", f'<w:pStyle w:val="Heading{each}"/>') for each in range(1, 10))
    own = paragraph("Own", '<w:outlineLvl w:val="2"/>')
    plain = paragraph("Body", '<w:pStyle w:val="Heading1"/><w:outlineLvl w:val="9"/>')
    assert body(headings + own + plain) == [
        *(f"h{min(each, 6)}: H{each}" for each in range(1, 10)),
        "h3: Own",
        "p: Body",
    ]


def test_a_style_inherits_its_heading_level_and_a_loop_of_styles_ends() -> None:
    styles = (
        '<w:style w:type="paragraph" w:styleId="Mine"><w:name w:val="Mine"/><w:basedOn w:val="Heading2"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="A"><w:name w:val="A"/><w:basedOn w:val="B"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="B"><w:name w:val="B"/><w:basedOn w:val="A"/></w:style>'
    )
    xml = paragraph("Mine", '<w:pStyle w:val="Mine"/>') + paragraph("Loop", '<w:pStyle w:val="A"/>')
    assert body(xml, styles=styles) == ["h2: Mine", "p: Loop"]


def test_the_title_is_the_property_else_the_title_paragraph() -> None:
    styled = paragraph("Styled title", '<w:pStyle w:val="Title"/>')
    assert read(word.document(styled)).title == "Styled title"
    assert read(word.document(styled, title="Property")).title == "Property"
    assert outline(read(word.document(styled))) == ["h1: Styled title"]


def test_lists_show_the_numbers_that_word_computes() -> None:
    xml = (
        item("one")
        + item("under", 1)
        + item("bullet", 2)
        + item("under", 1)
        + item("two")
        + item("again", 1)
        + paragraph("between")
        + item("three")
        + item("restarted", 0, 2)
        + item("on", 0, 2)
        + paragraph("no list", '<w:numPr><w:ilvl w:val="0"/><w:numId w:val="0"/></w:numPr>')
        + item("unknown list", 0, 99)
    )
    assert body(xml, numbering=LISTS) == [
        "li0 1.: one",
        "li1 1.a): under",
        "li2 -: bullet",
        "li1 1.b): under",
        "li0 2.: two",
        "li1 2.a): again",
        "p: between",
        "li0 3.: three",
        "li0 7.: restarted",
        "li0 8.: on",
        "p: no list",
        "li0 -: unknown list",
    ]


def test_numbering_of_a_style_and_of_headings() -> None:
    styles = (
        '<w:style w:type="paragraph" w:styleId="Article"><w:name w:val="Article"/>'
        '<w:pPr><w:outlineLvl w:val="0"/><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr></w:style>'
    )
    xml = paragraph("Scope", '<w:pStyle w:val="Article"/>') + paragraph("Terms", '<w:pStyle w:val="Article"/>')
    assert body(xml + item("silent", 1, 3), numbering=LISTS, styles=styles) == [
        "h1: Article I Scope",
        "h1: Article II Terms",
        "p: silent",
    ]


def test_merged_cells_stand_once_with_their_spans() -> None:
    xml = (
        "<w:tbl><w:tblPr/>"
        + row(cell("SPANH", '<w:gridSpan w:val="2"/>'), cell("r0c2"))
        + row(cell("r1c0"), cell("r1c1"), cell("SPANV", '<w:vMerge w:val="restart"/>'))
        + row(cell("r2c0"), cell("r2c1"), cell("", "<w:vMerge/>"))
        + row(cell("r3c0"), cell("r3c1"), cell("", '<w:vMerge w:val="continue"/>'))
        + "</w:tbl>"
    )
    assert body(xml) == ["table 4x3: *SPANH<1x2> | *r0c2 / r1c0 | r1c1 | SPANV<3x1> / r2c0 | r2c1 / r3c0 | r3c1"]


def test_header_rows_are_those_marked_else_what_the_look_says() -> None:
    marked = row(cell("a"), cell("b"), properties="<w:tblHeader/>") * 2 + row(cell("1"), cell("2"))
    assert body(f"<w:tbl><w:tblPr/>{marked}</w:tbl>") == ["table 3x2: *a | *b / *a | *b / 1 | 2"]
    plain = row(cell("1"), cell("2")) * 2
    look = '<w:tblPr><w:tblLook w:firstRow="0"/></w:tblPr>'
    assert body(f"<w:tbl>{look}{plain}</w:tbl>") == ["table 2x2: 1 | 2 / 1 | 2"]
    bits = '<w:tblPr><w:tblLook w:val="04A0"/></w:tblPr>'
    assert body(f"<w:tbl>{bits}{plain}</w:tbl>") == ["table 2x2: *1 | *2 / 1 | 2"]


def test_cells_hold_paragraphs_lists_and_nested_tables() -> None:
    nested = f"<w:tc><w:tbl>{row(cell('in'), cell('ner'))}</w:tbl>{item('point')}{paragraph('end')}</w:tc>"
    xml = f"<w:tbl><w:tblPr/>{row(cell('a'), cell('b'))}{row(cell('c'), nested)}</w:tbl>"
    assert body(xml, numbering=LISTS) == ["table 2x2: *a | *b / c | in ner\n1. point\nend"]


def test_a_single_cell_is_a_frame_and_a_deleted_row_is_gone() -> None:
    assert body(f"<w:tbl><w:tblPr/>{row(cell('framed'))}</w:tbl>") == ["p: framed"]
    gone = row(cell("x"), cell("y"), properties="<w:del w:id='1'/>")
    xml = f"<w:tbl><w:tblPr/>{row(cell('a'), cell('b'))}{gone}{row(cell('1'), cell('2'))}</w:tbl>"
    assert body(xml) == ["table 2x2: *a | *b / 1 | 2"]


def test_a_span_of_a_hundred_million_columns_is_cut() -> None:
    wide = row(cell("a", '<w:gridSpan w:val="100000000"/>'), cell("b", '<w:gridSpan w:val="100000000"/>'))
    window = read(word.document(f"<w:tbl><w:tblPr/>{wide}{row(cell('c'), cell('d'))}</w:tbl>"))
    table = window.blocks[0].table
    assert table is not None
    assert table.columns <= 1_001


def test_hidden_text_is_kept_apart() -> None:
    styles = (
        '<w:style w:type="character" w:styleId="Secret"><w:name w:val="Secret"/><w:rPr><w:vanish/></w:rPr></w:style>'
    )
    shown = run("on", "<w:vanish w:val='0'/>")
    xml = f"<w:p>{run('shown ')}{run('HIDDEN', '<w:vanish/>')}{shown}</w:p>"
    assert body(xml) == ["p: shown on", "p hidden: HIDDEN"]
    styled = run("S", "<w:rStyle w:val='Secret'/>")
    assert body(f"<w:p>{styled}</w:p>", styles=styles) == ["p hidden: S"]


def test_special_characters_of_a_run() -> None:
    xml = (
        "<w:p><w:r><w:t>1</w:t><w:noBreakHyphen/><w:t>24 hours</w:t><w:tab/><w:t>a</w:t><w:softHyphen/><w:t>b</w:t>"
        '<w:br/><w:t>c</w:t><w:br w:type="page"/><w:t>d</w:t></w:r></w:p>'
    )
    assert body(xml) == ["p: 1\u201124 hours\tab\ncd"]


def test_fields_links_and_content_controls_give_what_they_show() -> None:
    xml = (
        "<w:p><w:r><w:fldChar w:fldCharType='begin'/><w:instrText>PAGE</w:instrText>"
        f"<w:fldChar w:fldCharType='separate'/></w:r>{run('7')}<w:r><w:fldChar w:fldCharType='end'/></w:r>"
        f"<w:hyperlink r:id='x'>{run(' linked')}</w:hyperlink><w:fldSimple w:instr='DATE'>{run(' today')}</w:fldSimple>"
        f"<w:sdt><w:sdtPr><w:alias w:val='NOT'/></w:sdtPr><w:sdtContent>{run(' chosen')}</w:sdtContent></w:sdt></w:p>"
        f"<w:sdt><w:sdtContent>{paragraph('controlled')}</w:sdtContent></w:sdt>"
    )
    assert body(xml) == ["p: 7 linked today chosen", "p: controlled"]


def test_a_text_box_is_read_once_after_its_paragraph() -> None:
    box = f"<w:txbxContent>{paragraph('boxed')}</w:txbxContent>"
    xml = (
        f"<w:p>{run('anchor')}<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing><wp:inline><a:graphic>"
        f"<a:graphicData><wps:wsp><wps:txbx>{box}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:inline></w:drawing>"
        f"</mc:Choice><mc:Fallback><w:pict>{box}</w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    assert body(xml) == ["p: anchor", "p: boxed"]


def test_formulas_are_linear_text() -> None:
    xml = "<w:p><m:oMath><m:r><m:t>x=</m:t></m:r><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num></m:f></m:oMath></w:p>"
    assert body(xml) == ["p: x=1"]


def test_captions_are_captions() -> None:
    assert body(paragraph("Figure 1", '<w:pStyle w:val="Caption"/>')) == ["caption: Figure 1"]


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (word.bomb(60), FailureCode.TOO_LARGE),
        (word.laughs(), FailureCode.MALFORMED),
        (compound("EncryptionInfo", "EncryptedPackage"), FailureCode.ENCRYPTED),
        (compound("WordDocument"), FailureCode.MALFORMED),
        (zips.encrypted(word.document(""), "word/document.xml"), FailureCode.ENCRYPTED),
        (word.document("")[:-40], FailureCode.MALFORMED),
        (b"", FailureCode.MALFORMED),
    ],
)
def test_what_must_not_be_opened_is_refused_before_the_parser(data: bytes, code: FailureCode) -> None:
    refused = check_docx(io.BytesIO(data), LIMITS)
    assert refused is not None
    assert refused.code is code
    assert read_docx(io.BytesIO(data), LIMITS) == refused


@pytest.mark.parametrize(
    "changes",
    [
        {"word/document.xml": b"<w:document"},
        {"word/document.xml": b"<other/>"},
        {"word/styles.xml": b"no xml"},
        {"_rels/.rels": b"<Relationships xmlns='http://schemas.openxmlformats.org/package/2006/relationships'/>"},
        {"[Content_Types].xml": b"<Types xmlns='http://schemas.openxmlformats.org/package/2006/content-types'/>"},
        {"docProps/core.xml": b"<broken"},
    ],
)
def test_a_package_that_is_no_word_document_is_malformed(changes: dict[str, bytes]) -> None:
    found = read_docx(io.BytesIO(zips.repacked(word.document(paragraph("x")), changes)), LIMITS)
    assert isinstance(found, Failure)
    assert found.code is FailureCode.MALFORMED


def test_an_entity_is_never_fetched_or_expanded() -> None:
    assert check_docx(io.BytesIO(word.laughs()), LIMITS) is not None


def test_limits_count_while_reading() -> None:
    many = word.document(paragraph("ten bytes.") * 50)
    with pytest.raises(Refused) as caught:
        read_docx(io.BytesIO(many), limits(max_blocks=20))
    assert caught.value.failure.code is FailureCode.TOO_LARGE
    window = read_docx(io.BytesIO(many), limits(max_text_bytes=95))
    assert isinstance(window, WindowText)
    assert len(window.blocks) == 10
    table = word.document(f"<w:tbl><w:tblPr/>{row(cell('a'), cell('b')) * 50}</w:tbl>")
    with pytest.raises(Refused):
        read_docx(io.BytesIO(table), limits(max_cells=60))
