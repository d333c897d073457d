"""How recognised words become blocks, and how they join what a page says by itself."""

from __future__ import annotations

import pytest

from pipeline.stages.ocr import merge, pages_needing_ocr
from pipeline.types import Block, BlockKind, Box, ExtractedDocument, Page, PageMethod, RecognisedPage, Word

HEIGHT = 0.012


def words(
    page: int, rows: list[str], *, top: float = 0.2, confidence: float = 0.9, height: float = HEIGHT, paragraph: int = 1
) -> tuple[Word, ...]:
    """Rows of words as an engine gives them, numbered from 1 within the paragraph."""
    found = []
    for number, row in enumerate(rows):
        y, x = top + number * 0.02, 0.1
        for shown in row.split(" "):
            width = 0.01 * len(shown)
            found.append(Word(shown, Box(page, x, y, x + width, y + height), confidence, number + 1, paragraph))
            x += width + 0.01
    return tuple(found)


def scanned(number: int = 1, **more: object) -> Page:
    return Page(number, 612, 792, method=PageMethod.SKIPPED, **more)  # type: ignore[arg-type]


def test_only_pages_still_to_be_read_need_ocr() -> None:
    pages = (Page(1, 612, 792), scanned(2), Page(3, 612, 792, method=PageMethod.BLANK), scanned(4))
    undrawable = Page(5, 0, 0, method=PageMethod.SKIPPED)
    assert pages_needing_ocr((*pages, undrawable)) == (2, 4)


def test_words_become_paragraphs_with_box_and_confidence() -> None:
    first = words(1, ["The invoice of May", "is paid."], confidence=0.8)
    second = words(1, ["Thank you."], top=0.5, confidence=0.6, paragraph=2)
    document = merge(ExtractedDocument((), (scanned(),)), [RecognisedPage(1, first + second, 0.75)])
    paragraph, thanks = document.blocks
    assert (paragraph.kind, paragraph.text) == (BlockKind.PARAGRAPH, "The invoice of May is paid.")
    assert paragraph.method is PageMethod.OCR
    assert paragraph.confidence == pytest.approx(0.8)
    assert paragraph.boxes == (Box(1, 0.1, 0.2, max(word.box.x1 for word in first), 0.22 + HEIGHT),)
    assert thanks.text == "Thank you."
    assert thanks.confidence == pytest.approx(0.6)
    assert (document.pages[0].method, document.pages[0].confidence) == (PageMethod.OCR, 0.75)


def test_words_divided_at_a_line_end_are_joined() -> None:
    read = RecognisedPage(1, words(1, ["a hyphen-", "ated word and a co-", "operative one -"]), 0.9)
    (block,) = merge(ExtractedDocument((), (scanned(),)), [read]).blocks
    assert block.text == "a hyphenated word and a co-operative one -"


def test_tall_short_text_is_a_heading() -> None:
    title = words(1, ["Delivery note"], top=0.05, height=2 * HEIGHT, paragraph=1)
    body = words(1, ["Ten boxes of paper", "were delivered today."], paragraph=2)
    blocks = merge(ExtractedDocument((), (scanned(),)), [RecognisedPage(1, title + body, 0.9)]).blocks
    assert [(block.kind, block.level) for block in blocks] == [(BlockKind.HEADING, 1), (BlockKind.PARAGRAPH, 0)]


def test_specks_are_dropped_and_unsure_letters_kept() -> None:
    noise = words(1, ["|", "~", "a7"], confidence=0.0)
    sign = words(1, ["&"], top=0.6, confidence=0.5, paragraph=2)
    blocks = merge(ExtractedDocument((), (scanned(),)), [RecognisedPage(1, noise + sign, 0.2)]).blocks
    assert [block.text for block in blocks] == ["a7", "&"]


def test_nothing_found_is_blank_with_the_confidence() -> None:
    document = merge(ExtractedDocument((), (scanned(),)), [RecognisedPage(1, words(1, ["|"], confidence=0.0), 0.0)])
    assert document.blocks == ()
    assert (document.pages[0].method, document.pages[0].confidence) == (PageMethod.BLANK, 0.0)


def test_blocks_stand_in_page_order() -> None:
    native = tuple(Block(BlockKind.PARAGRAPH, f"page {number}", page=number) for number in (1, 3))
    pages = (Page(1, 612, 792), scanned(2), Page(3, 612, 792))
    read = RecognisedPage(2, words(2, ["recognised"]), 0.9)
    assert [block.text for block in merge(ExtractedDocument(native, pages), [read]).blocks] == [
        "page 1",
        "recognised",
        "page 3",
    ]


def test_a_page_with_own_text_is_mixed_and_nothing_is_read_twice() -> None:
    stamp = Block(BlockKind.FOOTER, "Page 7", page=1, boxes=(Box(1, 0.05, 0.93, 0.3, 0.97),))
    body = words(1, ["The body of the scan"])
    again = words(1, ["Page 7"], top=0.94, paragraph=2)
    document = merge(ExtractedDocument((stamp,), (scanned(),)), [RecognisedPage(1, body + again, 0.9)])
    assert [block.text for block in document.blocks] == ["The body of the scan", "Page 7"]
    assert [block.method for block in document.blocks] == [PageMethod.OCR, PageMethod.NATIVE]
    assert document.pages[0].method is PageMethod.MIXED


def test_own_text_stays_native_when_ocr_adds_nothing() -> None:
    stamp = Block(BlockKind.PARAGRAPH, "Draft", page=1, boxes=(Box(1, 0.1, 0.1, 0.3, 0.2),))
    document = merge(ExtractedDocument((stamp,), (scanned(),)), [RecognisedPage(1, (), 0.0)])
    assert document.blocks == (stamp,)
    assert document.pages[0].method is PageMethod.NATIVE


GARBLED_PAGE = scanned(garble=0.8, warning="its text is not usable")
GARBLED = ExtractedDocument(
    (Block(BlockKind.PARAGRAPH, "+HOOR", page=1), Block(BlockKind.PARAGRAPH, "hidden", page=1, hidden=True)),
    (GARBLED_PAGE,),
    warnings=("Page 1: its text is not usable", "Another matter."),
)


def test_recognised_text_replaces_garbled_text_and_its_warning() -> None:
    document = merge(GARBLED, [RecognisedPage(1, words(1, ["Hello"]), 0.9)])
    assert {block.text for block in document.blocks if not block.hidden} == {"Hello"}
    assert (document.pages[0].method, document.pages[0].warning) == (PageMethod.OCR, None)
    assert document.warnings == ("Another matter.",)


@pytest.mark.parametrize("read", [RecognisedPage(1, (), 0.0), RecognisedPage(1, words(1, ["Hcllo"]), 0.2)])
def test_garbled_text_stays_with_its_warning_when_ocr_is_no_better(read: RecognisedPage) -> None:
    document = merge(GARBLED, [read])
    assert document.blocks == GARBLED.blocks
    assert document.warnings == GARBLED.warnings
    page = document.pages[0]
    assert (page.method, page.warning, page.garble) == (PageMethod.NATIVE, GARBLED_PAGE.warning, 0.8)


def test_recognised_text_is_cleaned() -> None:
    read = RecognisedPage(1, words(1, ["a\x00b c\ud800"]), 0.9)
    assert [block.text for block in merge(ExtractedDocument((), (scanned(),)), [read]).blocks] == ["ab c"]


def test_long_words_on_a_page_lying_on_its_side_are_no_headings() -> None:
    def turned(word: Word) -> Word:
        return Word(
            word.text, Box(1, word.box.y0, word.box.x0, word.box.y1, word.box.x1), 0.9, word.line, word.paragraph
        )

    body = words(1, ["Ten boxes of paper", "were delivered today."], paragraph=1)
    note = words(1, ["Acknowledgements"], top=0.6, paragraph=2)
    read = RecognisedPage(1, tuple(map(turned, body + note)), 0.9, rotation=90)
    blocks = merge(ExtractedDocument((), (scanned(),)), [read]).blocks
    assert [block.kind for block in blocks] == [BlockKind.PARAGRAPH, BlockKind.PARAGRAPH]
