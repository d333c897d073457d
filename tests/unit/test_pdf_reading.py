"""The PDF jobs on documents built here: what is refused, what is read, which pages need OCR."""

from __future__ import annotations

import time
from io import BytesIO

import pypdfium2 as pdfium
import pytest

from pipeline.engines.pdf import jobs, runs
from pipeline.errors import Failure, FailureCode
from pipeline.types import Box, DocumentProfile, Line, PageMethod, WindowText
from tests.inputs.pdfs import Image, PageSpec, lines, mapped_font, pdf, text


def profile(document: bytes, max_pages: int = 2_000) -> DocumentProfile | Failure:
    return jobs.PROFILE_JSON.validate_json(jobs.profile(BytesIO(document), {"max_pages": max_pages}))


def read(document: bytes, first: int = 1, last: int = 1) -> WindowText:
    arguments = {"first_page": first, "last_page": last, "max_pages": 2_000}
    window = jobs.WINDOW_JSON.validate_json(jobs.read(BytesIO(document), arguments))
    assert isinstance(window, WindowText)
    return window


def line(content: bytes, **more: object) -> Line:
    (only,) = read(pdf([PageSpec(content, **more)])).lines  # type: ignore[arg-type]
    return only


# --- opening ------------------------------------------------------------------------------


def test_profile_counts_pages_and_cleans_the_title() -> None:
    document = pdf([text(72, 700, "one"), b"", text(72, 700, "three")], title=b"Annual\x00 report")
    assert profile(document) == DocumentProfile(3, "Annual report")
    assert read(document).title == "Annual report"


def test_password_is_needed_only_when_it_is() -> None:
    refused = profile(pdf([text(72, 700, "secret")], passwords=(b"user", b"owner")))
    assert isinstance(refused, Failure)
    assert refused.code is FailureCode.ENCRYPTED
    opened = pdf([text(72, 700, "Openable without any password.")], passwords=(b"", b"owner"))
    assert profile(opened) == DocumentProfile(1)
    assert [found.text for found in read(opened).lines] == ["Openable without any password."]


@pytest.mark.parametrize(
    "document",
    [b"", b"%PDF-1.7 and nothing else", b"plain text", pdf([]), pdf([text(72, 700, "cut off")])[:90]],
    ids=["empty", "header only", "no PDF", "no pages", "truncated"],
)
def test_damaged_documents_are_malformed(document: bytes) -> None:
    refused = profile(document)
    assert isinstance(refused, Failure)
    assert refused.code is FailureCode.MALFORMED
    answer = jobs.read(BytesIO(document), {"first_page": 1, "last_page": 1, "max_pages": 9})
    assert jobs.WINDOW_JSON.validate_json(answer) == refused


def test_too_many_pages_names_both_numbers() -> None:
    refused = profile(pdf([b""] * 7), max_pages=5)
    assert refused == Failure(FailureCode.TOO_MANY_PAGES, "The document has 7 pages; the limit is 5.")


@pytest.mark.parametrize("claimed", [2_147_483_647, 900_000, 40, 0, -1])
def test_page_count_is_walked_not_believed(claimed: int) -> None:
    started = time.process_time()
    assert profile(pdf([text(72, 700, "x")] * 3, count=claimed)) == DocumentProfile(3)
    assert time.process_time() - started < 2


def test_pages_outside_the_document_are_a_bug() -> None:
    with pytest.raises(ValueError, match=r"within 1\.\.1"):
        jobs.read(BytesIO(pdf([b""])), {"first_page": 1, "last_page": 2, "max_pages": 9})


# --- lines --------------------------------------------------------------------------------


def test_a_line_has_size_style_and_place() -> None:
    plain = line(text(72, 700, "Plain words", size=11))
    assert (plain.text, plain.size, plain.bold, plain.italic, plain.monospace) == (
        "Plain words",
        11,
        False,
        False,
        False,
    )
    assert plain.box.x0 == pytest.approx(72 / 612, abs=0.002)
    assert plain.box.y0 < (792 - 700) / 792 < plain.box.y1
    assert line(text(72, 700, "Bold words", font="F2")).bold
    assert line(text(72, 700, "Slanted words", font="F4")).italic
    assert line(text(72, 700, "fixed pitch", font="F3")).monospace


def test_size_is_what_is_seen_however_it_is_scaled() -> None:
    assert line(b"BT /F1 1 Tf 14 0 0 14 72 700 Tm (scaled by the text matrix) Tj ET").size == pytest.approx(14)
    assert line(b"q 0.5 0 0 0.5 0 0 cm BT /F1 20 Tf 144 1400 Td (scaled by the page) Tj ET Q").size == pytest.approx(10)


def test_words_without_spaces_between_them_are_kept_apart() -> None:
    moved = b"BT /F1 12 Tf 72 700 Td [(Hello) -400 (wide) -30 (r) 20 (kerned)] TJ ET"
    assert line(moved).text == "Hello widerkerned"


def test_superscripts_stay_in_their_line() -> None:
    raised = text(72, 700, "on the 4") + text(115.5, 704, "th", size=7) + text(125, 700, "of May")
    assert line(raised).text == "on the 4th of May"


def test_far_apart_is_not_one_line() -> None:
    found = read(pdf([text(72, 700, "Widget") + text(300, 700, "4.20")])).lines
    assert [part.text for part in found] == ["Widget", "4.20"]
    assert [part.order for part in found] == [0, 1]


def test_ligatures_expand_and_other_forms_stay() -> None:
    codes = {0x41: "\ufb01", 0x42: "\ufb03", 0x43: "\ufb00", 0x44: "²", 0x45: "½"}
    document = pdf([b"BT /FX 12 Tf 72 700 Td (ABCDE) Tj ET"], fonts={"FX": mapped_font(codes)})
    assert [found.text for found in read(document).lines] == ["fiffiff²½"]


def test_hyphen_at_a_line_end_is_marked_and_inside_a_line_is_not() -> None:
    found = read(pdf([lines(72, 700, ["well-known and hyphen-", "ated words"])])).lines
    assert [part.text for part in found] == ["well-known and hyphen\u00ad", "ated words"]


def test_what_no_store_accepts_never_comes_out() -> None:
    codes = {0x41: "\x00", 0x42: "\ud835", 0x43: "\u202e", 0x44: "a", 0x45: "\x07"}
    document = pdf([b"BT /FX 12 Tf 72 700 Td (DADBDCDED) Tj ET"], fonts={"FX": mapped_font(codes)})
    assert [found.text for found in read(document).lines] == ["aaaaa"]


def test_right_to_left_text_is_in_logical_order() -> None:
    word = "שלום"
    codes = dict(enumerate(reversed(word), start=0x41))
    document = pdf([b"BT /FX 12 Tf 72 700 Td (ABCD) Tj ET"], fonts={"FX": mapped_font(codes)})
    (found,) = read(document).lines
    assert found.text == word
    assert found.box.x0 == pytest.approx(72 / 612, abs=0.003)


def test_text_nobody_sees_is_hidden() -> None:
    content = (
        text(72, 700, "seen by all readers") + text(72, 680, "never shown", mode=3) + text(700, 660, "off the page")
    )
    content += text(72, 640, "a speck", size=0.4)
    hidden = {found.text: found.hidden for found in read(pdf([content])).lines}
    assert hidden == {"seen by all readers": False, "never shown": True, "off the page": True, "a speck": True}


@pytest.mark.parametrize("rotate", [0, 90, 180, 270])
@pytest.mark.parametrize("crop", [None, (50.0, 100.0, 450.0, 700.0)])
@pytest.mark.parametrize("turn", [b"1 0 0 1", b"0 1 -1 0", b"-1 0 0 -1", b"0 -1 1 0"])
def test_boxes_lie_over_the_ink_of_the_displayed_page(
    rotate: int, crop: tuple[float, float, float, float] | None, turn: bytes
) -> None:
    content = b"BT /F1 18 Tf %b 260 400 Tm (HHHHHHHHHH) Tj ET" % turn
    document = pdf([PageSpec(content, crop=crop, rotate=rotate)])
    window = read(document)
    (found,) = window.lines
    (page,) = window.pages
    ink, (width, height) = _ink(document)
    assert (page.width, page.height) == pytest.approx((width, height))
    assert page.rotation == rotate
    assert found.box.x0 - 0.01 < ink.x0 < ink.x1 < found.box.x1 + 0.01
    assert found.box.y0 - 0.01 < ink.y0 < ink.y1 < found.box.y1 + 0.01
    assert (found.box.x1 - found.box.x0) * (found.box.y1 - found.box.y0) < 2 * (ink.x1 - ink.x0) * (ink.y1 - ink.y0)


def _ink(document: bytes) -> tuple[Box, tuple[float, float]]:
    """Where the displayed page is dark, and its size in points."""
    with pdfium.PdfDocument(document) as opened:
        picture = opened[0].render(scale=1, grayscale=True).to_pil().point(lambda value: 255 * (value < 128))
        x0, y0, x1, y1 = picture.getbbox()
        size = opened[0].get_size()
    return Box(1, x0 / picture.width, y0 / picture.height, x1 / picture.width, y1 / picture.height), size


# --- pages --------------------------------------------------------------------------------


def method(page: PageSpec) -> PageMethod:
    return read(pdf([page])).pages[0].method


FULL = b"q 600 0 0 780 6 6 cm /I Do Q\n"
SMALL = b"q 100 0 0 100 400 600 cm /I Do Q\n"
SCAN = {"I": Image()}


def test_which_pages_need_ocr() -> None:
    assert method(PageSpec(b"")) is PageMethod.BLANK
    assert method(PageSpec(text(72, 700, "A page of words that says it all."))) is PageMethod.NATIVE
    assert method(PageSpec(FULL, images=SCAN)) is PageMethod.SKIPPED
    assert method(PageSpec(SMALL, images=SCAN)) is PageMethod.SKIPPED
    assert method(PageSpec(FULL + text(300, 20, "Page 7"), images=SCAN)) is PageMethod.SKIPPED
    assert method(PageSpec(SMALL + text(300, 20, "Page 7"), images=SCAN)) is PageMethod.NATIVE
    assert method(PageSpec(FULL + text(72, 700, "More than twenty letters of text."), images=SCAN)) is PageMethod.NATIVE
    assert method(PageSpec(FULL + text(72, 700, "An older recognition's hidden text", mode=3), images=SCAN)) is (
        PageMethod.SKIPPED
    )


def test_outlines_may_be_letters_and_rules_are_not() -> None:
    outlines = b"".join(b"%d %d m 5 5 9 9 20 20 c h f\n" % (x, x) for x in range(60))
    assert method(PageSpec(outlines)) is PageMethod.SKIPPED
    assert method(PageSpec(b"10 10 m 500 10 l S 10 20 500 300 re S")) is PageMethod.BLANK


def test_an_inline_image_counts() -> None:
    inline = b"q 612 0 0 792 0 0 cm BI /W 1 /H 1 /CS /G /BPC 8 ID \x40 EI Q"
    assert method(PageSpec(inline)) is PageMethod.SKIPPED


def test_a_garbled_page_is_warned_of_and_needs_ocr() -> None:
    broken = mapped_font({code: chr(0xE000 + code) for code in range(0x41, 0x5B)})
    document = pdf([b"BT /FX 12 Tf 72 700 Td (THESE WORDS ARE LOST) Tj ET"], fonts={"FX": broken})
    window = read(document)
    (page,) = window.pages
    assert page.method is PageMethod.SKIPPED
    assert page.garble > 0.9
    assert page.warning is not None
    assert window.warnings == (f"Page 1: {page.warning}",)


def test_a_page_of_too_many_runs_is_cut_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MAX_PAGE_RUNS", 3)
    content = b"".join(text(72, 700 - 20 * row, f"row {row}") for row in range(5))
    window = read(pdf([content]))
    assert [found.text for found in window.lines] == ["row 0", "row 1", "row 2"]
    assert window.pages[0].warning is not None
    assert read(pdf([b""])).pages[0].warning is None


def test_a_window_holds_only_its_pages() -> None:
    document = pdf([text(72, 700, f"words of page {number}") for number in range(1, 6)])
    window = read(document, 2, 3)
    assert [page.page for page in window.pages] == [2, 3]
    assert [(found.page, found.text) for found in window.lines] == [(2, "words of page 2"), (3, "words of page 3")]
