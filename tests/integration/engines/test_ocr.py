"""Text recognition on pages rendered here: what is read, where it stands, and how sure it is."""

from __future__ import annotations

import difflib

import pytest
from PIL import Image, ImageDraw

from pipeline.engines import media
from pipeline.engines.asking import Asker
from pipeline.engines.ocr.tesseract import TesseractOcr
from pipeline.engines.sandbox.process import SandboxProcess
from pipeline.errors import Failure, FailureCode
from pipeline.types import RecognisedPage
from tests.inputs import pdfs
from tests.inputs.pictures import SENTENCES, page, saved, scan_pdf, text_pdf
from tests.integration.engines.conftest import MEMORY_BYTES, Place
from tests.unit.documents import LIMITS

TEXT = " ".join(SENTENCES)


def recognise(
    ocr: TesseractOcr, place: Place, data: bytes, media_type: str = "image/png", number: int = 1
) -> RecognisedPage:
    answer = ocr.recognize(place(data), media_type, (number,), ("eng",))
    assert not isinstance(answer, Failure), answer
    assert [read.page for read in answer] == [number]
    return answer[0]


def text(read: RecognisedPage) -> str:
    return " ".join(word.text for word in read.words)


def likeness(read: RecognisedPage) -> float:
    """How much of the sentences was read right, 0..1."""
    return difflib.SequenceMatcher(None, text(read), TEXT, autojunk=False).ratio()


def centre(read: RecognisedPage, wanted: str) -> tuple[float, float]:
    box = next(word.box for word in read.words if word.text.startswith(wanted))
    return (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2


def test_a_scanned_page_is_read_with_places_and_confidence(ocr: TesseractOcr, place: Place) -> None:
    read = recognise(ocr, place, scan_pdf(page(*SENTENCES)), media.PDF)
    assert text(read) == TEXT
    assert read.confidence > 0.85
    assert read.rotation == 0
    assert all(0 <= word.confidence <= 1 for word in read.words)
    # The generator put the code in the upper left quarter of the page, and each sentence on a line of its own.
    x, y = centre(read, "ERR-4021")
    assert 0.3 < x < 0.6
    assert 0.08 < y < 0.2
    lines = [{word.line for word in read.words if word.text == first} for first in ("The", "Close", "If")]
    assert all(len(line) == 1 for line in lines)
    assert len(set.union(*lines)) == 3


def test_the_page_of_a_text_pdf_is_drawn_as_displayed(ocr: TesseractOcr, place: Place) -> None:
    read = recognise(ocr, place, text_pdf(*SENTENCES, rotate=90), media.PDF)
    assert text(read) == TEXT
    assert read.rotation in (90, 270)


def test_a_screenshot_without_a_resolution_is_read(ocr: TesseractOcr, place: Place) -> None:
    assert likeness(recognise(ocr, place, saved(page(*SENTENCES, dpi=96)))) > 0.99


def test_72_dpi_are_enough(ocr: TesseractOcr, place: Place) -> None:
    for options in ({}, {"dpi": (72, 72)}):
        assert likeness(recognise(ocr, place, saved(page(*SENTENCES, dpi=72), "PNG", **options))) > 0.98


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_turned_page_is_read_and_its_boxes_stay_where_the_page_shows_them(
    ocr: TesseractOcr, place: Place, turn: int
) -> None:
    upright = recognise(ocr, place, saved(page(*SENTENCES)))
    # Pillow turns against the clock; what makes the page upright again is the same turn with the clock.
    turned = recognise(ocr, place, saved(page(*SENTENCES).rotate(turn, expand=True)))
    assert text(turned) == TEXT
    assert turned.rotation == turn
    for wanted in ("ERR-4021", "filter"):
        x, y = centre(upright, wanted)
        expected = {90: (y, 1 - x), 180: (1 - x, 1 - y), 270: (1 - y, x)}[turn]
        assert centre(turned, wanted) == pytest.approx(expected, abs=0.02)


def test_a_turned_label_is_read_though_it_is_too_short_to_detect_its_turn(ocr: TesseractOcr, place: Place) -> None:
    label = page("ERR-4021 Pump failure").crop((0, 0, 1100, 180)).rotate(180)
    assert text(recognise(ocr, place, saved(label))) == "ERR-4021 Pump failure"


def test_the_pages_of_a_tiff_are_read_each_for_itself(ocr: TesseractOcr, place: Place) -> None:
    tiff = saved(page("First page here."), "TIFF", save_all=True, append_images=[page("Second page there.")])
    assert text(recognise(ocr, place, tiff, media.TIFF, 2)) == "Second page there."


def test_a_page_without_words_has_no_words(ocr: TesseractOcr, place: Place) -> None:
    assert recognise(ocr, place, saved(Image.new("L", (800, 600), 255))) == RecognisedPage(1, (), 0.0)
    photo = Image.new("RGB", (640, 480), (120, 170, 230))
    draw = ImageDraw.Draw(photo)
    for step in range(60):
        left, top = (step * 97) % 640, 200 + (step * 61) % 280
        draw.ellipse((left, top, left + 20 + step, top + 10 + step // 2), fill=(step, 90 + step, 40))
    read = recognise(ocr, place, saved(photo))
    assert read.confidence < 0.5


def test_a_page_of_a_size_that_no_memory_holds_is_drawn_smaller(ocr: TesseractOcr, place: Place) -> None:
    content = pdfs.text(1_000, 9_000, "LARGE", size=400)
    read = recognise(ocr, place, pdfs.pdf([pdfs.PageSpec(content, media=(0, 0, 14_400, 14_400))]), media.PDF)
    assert text(read) == "LARGE"


@pytest.mark.parametrize(
    ("data", "media_type", "code"),
    [
        (pdfs.pdf([pdfs.PageSpec()], passwords=(b"secret", b"owner")), media.PDF, FailureCode.ENCRYPTED),
        (text_pdf("x")[:200], media.PDF, FailureCode.MALFORMED),
        (saved(page("x"))[:500], "image/png", FailureCode.MALFORMED),
    ],
)
def test_what_cannot_be_opened_is_a_failure(
    ocr: TesseractOcr, place: Place, data: bytes, media_type: str, code: FailureCode
) -> None:
    answer = ocr.recognize(place(data), media_type, (1,), ("eng",))
    assert isinstance(answer, Failure)
    assert answer.code is code


def test_a_page_that_takes_too_long_is_its_death(sandbox: SandboxProcess, place: Place) -> None:
    hasty = TesseractOcr(Asker(sandbox.client(), 0.3, MEMORY_BYTES), LIMITS, ("eng",))
    answer = hasty.recognize(place(saved(page(*SENTENCES * 4, dpi=300))), "image/png", (1,), ("eng",))
    assert isinstance(answer, Failure)
    assert answer.code is FailureCode.TIMED_OUT
    assert answer.died


def test_a_missing_language_is_a_crash_and_not_a_wrong_text(sandbox: SandboxProcess, place: Place) -> None:
    provider = TesseractOcr(Asker(sandbox.client(), 20.0, MEMORY_BYTES), LIMITS, ("xxx",))
    assert not provider.available()
    answer = provider.recognize(place(saved(page("x"))), "image/png", (1,), ("xxx",))
    assert isinstance(answer, Failure)
    assert answer.code is FailureCode.CRASHED
