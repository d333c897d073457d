"""What every OcrProvider gives: the asked pages and no others, words in order with places and confidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import Failure, FailureCode
from pipeline.types import RecognisedPage
from tests.contract.presses import PDF, PNG, Press, damaged

WORDS = "The cooling pump reports ERR-4021 again"


@pytest.fixture(autouse=True)
def _installed(press: Press) -> None:
    if not press.engines.ocr.available():
        pytest.skip("Tesseract with English is not installed")


def recognise(press: Press, content: Path, media_type: str, *pages: int) -> tuple[RecognisedPage, ...]:
    answer = press.engines.ocr.recognize(content, media_type, pages, ("eng",))
    assert not isinstance(answer, Failure), answer
    return answer


def text(page: RecognisedPage) -> str:
    return " ".join(word.text for word in page.words)


def test_the_asked_pages_are_read_and_no_others(press: Press) -> None:
    content = press.scan(WORDS, "not this page", "The bypass valve is closed")
    read = recognise(press, content, PDF, 1, 3)
    assert [page.page for page in read] == [1, 3]
    assert [text(page) for page in read] == [WORDS, "The bypass valve is closed"]
    for page in read:
        assert 0.5 < page.confidence <= 1
        assert page.rotation == 0
        for word in page.words:
            assert word.box.page == page.page
            assert 0 <= word.box.x0 < word.box.x1 <= 1
            assert 0 <= word.box.y0 < word.box.y1 <= 1
            assert 0 <= word.confidence <= 1
        lefts = [word.box.x0 for word in page.words]
        assert lefts == sorted(lefts)


def test_a_picture_is_a_page(press: Press) -> None:
    (read,) = recognise(press, press.picture(WORDS), PNG, 1)
    assert text(read) == WORDS


def test_a_page_without_words_has_no_words_and_no_confidence(press: Press) -> None:
    assert recognise(press, press.scan(""), PDF, 1) == (RecognisedPage(1, (), 0.0),)


def test_no_page_asked_is_no_page_read(press: Press) -> None:
    assert recognise(press, press.scan(WORDS), PDF) == ()


def test_what_cannot_be_opened_is_a_failure(press: Press) -> None:
    refused = {
        press.locked_pdf(): (PDF, 1, FailureCode.ENCRYPTED),
        damaged(press, press.pdf("x")): (PDF, 1, FailureCode.MALFORMED),
        press.file(b"\x89PN"): (PNG, 1, FailureCode.MALFORMED),
        press.pdf("one page"): (PDF, 2, FailureCode.MALFORMED),
    }
    for content, (media_type, page, code) in refused.items():
        answer = press.engines.ocr.recognize(content, media_type, (page,), ("eng",))
        assert isinstance(answer, Failure), content
        assert (answer.code, answer.died) == (code, False)
