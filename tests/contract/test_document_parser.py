"""What every DocumentParser gives: pages counted before they are read, windows that join, refusals as values."""

from __future__ import annotations

import pytest

from pipeline.engines import media
from pipeline.errors import Failure, FailureCode
from pipeline.types import BlockKind, DocumentProfile, PageMethod, WindowText
from tests.contract.presses import PDF, PNG, Press, damaged

PAGES = (
    "The harbour master counts the ships.",
    "",
    "The quay is nine metres wide and longer than before.",
)


def window(press: Press, content: object, media_type: str, first: int, last: int) -> WindowText:
    read = press.engines.parser.read(content, media_type, first, last)  # type: ignore[arg-type]
    assert isinstance(read, WindowText), read
    return read


def test_a_document_with_pages_is_counted_and_read_by_the_page(press: Press) -> None:
    content = press.pdf(*PAGES)
    profile = press.engines.parser.profile(content, PDF)
    assert isinstance(profile, DocumentProfile)
    assert profile.pages == 3
    read = window(press, content, PDF, 1, 3)
    assert [(page.page, page.method) for page in read.pages] == [
        (1, PageMethod.NATIVE),
        (2, PageMethod.BLANK),
        (3, PageMethod.NATIVE),
    ]
    assert all(page.width > 0 and page.height > 0 for page in read.pages)
    assert [(line.page, line.text) for line in read.lines] == [(1, PAGES[0]), (3, PAGES[2])]
    assert read.blocks == ()
    for line in read.lines:
        assert line.box.page == line.page
        assert 0 <= line.box.x0 < line.box.x1 <= 1
        assert 0 <= line.box.y0 < line.box.y1 <= 1
        assert line.size > 0


def test_windows_join_to_what_is_read_at_once(press: Press) -> None:
    content = press.pdf(*PAGES)
    whole = window(press, content, PDF, 1, 3)
    parts = [window(press, content, PDF, 1, 2), window(press, content, PDF, 3, 3)]
    assert parts[0].pages + parts[1].pages == whole.pages
    assert parts[0].lines + parts[1].lines == whole.lines


def test_a_picture_of_text_is_a_page_to_be_recognised(press: Press) -> None:
    for content, media_type in ((press.scan("words"), PDF), (press.picture("words"), PNG)):
        assert press.engines.parser.profile(content, media_type) == DocumentProfile(1)
        read = window(press, content, media_type, 1, 1)
        assert [(page.page, page.method) for page in read.pages] == [(1, PageMethod.SKIPPED)]
        assert read.pages[0].width > 0
        assert (read.lines, read.blocks) == ((), ())


def test_a_document_without_pages_gives_blocks(press: Press) -> None:
    content = press.file("One harbour.\n\nTwo quays – 東京.\n".encode())
    assert press.engines.parser.profile(content, media.PLAIN) == DocumentProfile(0)
    read = window(press, content, media.PLAIN, 1, 0)
    assert [(block.kind, block.text, block.page) for block in read.blocks] == [
        (BlockKind.PARAGRAPH, "One harbour.", None),
        (BlockKind.PARAGRAPH, "Two quays – 東京.", None),
    ]
    assert (read.pages, read.lines) == ((), ())


@pytest.mark.parametrize("content", ["nul\x00 over\u202eride\u202c bell\x07".encode(), b"half \xed\xa0\x80 a letter"])
def test_text_comes_clean(press: Press, content: bytes) -> None:
    (block,) = window(press, press.file(content), media.PLAIN, 1, 0).blocks
    assert not set(block.text) & {"\x00", "\u202e", "\u202c", "\x07", "\ud800"}
    assert block.text.split()[0] in ("nul", "half")
    block.text.encode()


def test_a_text_without_words_has_no_blocks(press: Press) -> None:
    assert window(press, press.file(b" \n\n\t\n"), media.PLAIN, 1, 0).blocks == ()


@pytest.mark.parametrize("media_type", ["application/x-unheard-of", "image/svg+xml", media.XLSX, "audio/mpeg", ""])
def test_a_type_without_a_reader_is_unsupported(press: Press, media_type: str) -> None:
    content = press.file(b"anything")
    for answer in (
        press.engines.parser.profile(content, media_type),
        press.engines.parser.read(content, media_type, 1, 0),
    ):
        assert isinstance(answer, Failure)
        assert (answer.code, answer.died) == (FailureCode.UNSUPPORTED_TYPE, False)


def test_what_cannot_be_opened_is_refused_by_profile_and_read_alike(press: Press) -> None:
    refused = {
        press.locked_pdf(): (PDF, FailureCode.ENCRYPTED),
        damaged(press, press.pdf(*PAGES)): (PDF, FailureCode.MALFORMED),
        press.file(b""): (PDF, FailureCode.MALFORMED),
        damaged(press, press.file(b"\x89PN")): (PNG, FailureCode.MALFORMED),
    }
    for content, (media_type, code) in refused.items():
        for answer in (
            press.engines.parser.profile(content, media_type),
            press.engines.parser.read(content, media_type, 1, 1),
        ):
            assert isinstance(answer, Failure), content
            assert (answer.code, answer.died) == (code, False)
            assert answer.detail.endswith(".")


@pytest.mark.parametrize(("first", "last"), [(0, 1), (2, 3), (4, 4)])
def test_a_page_that_is_not_there_is_no_text(press: Press, first: int, last: int) -> None:
    answer = press.engines.parser.read(press.pdf("one", "two"), PDF, first, last)
    assert isinstance(answer, Failure)
