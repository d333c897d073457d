"""Every format through inspector, profile and reader, each in a confined child."""

from __future__ import annotations

import time

import pytest
from PIL import Image

from pipeline.engines import media
from pipeline.engines.asking import Asker
from pipeline.engines.inspector import SandboxedInspector
from pipeline.engines.parser import SandboxedParser
from pipeline.engines.sandbox.client import SandboxReply
from pipeline.engines.sandbox.process import SandboxProcess
from pipeline.errors import Failure, FailureCode
from pipeline.types import PageMethod, WindowText
from tests.inputs import pdfs, word
from tests.inputs.compound import compound
from tests.inputs.pictures import huge_png, saved, text_pdf
from tests.integration.engines.conftest import MEMORY_BYTES, TIMEOUT_S, Place
from tests.unit.documents import LIMITS, outline

MEBIBYTE = 1024 * 1024


@pytest.mark.parametrize(
    ("data", "filename", "media_type", "expected"),
    [
        (b"# T\n\nx", "a.md", media.MARKDOWN, ["h1: T", "p: x"]),
        (b"one\n\ntwo", "a.txt", media.PLAIN, ["p: one", "p: two"]),
        (b"<h1>T</h1><p>x", "a.html", media.HTML, ["h1: T", "p: x"]),
        (b"a;b\n1,5;2\n", "a.csv", media.CSV, ["table 2x2: *a | *b / 1,5 | 2"]),
        (b"a\tb\n1\t2\n", "a.tsv", media.TSV, ["table 2x2: *a | *b / 1 | 2"]),
        (word.document(word.paragraph("x")), "a.docx", media.DOCX, ["p: x"]),
    ],
)
def test_documents_with_their_own_structure(
    place: Place,
    inspector: SandboxedInspector,
    parser: SandboxedParser,
    data: bytes,
    filename: str,
    media_type: str,
    expected: list[str],
) -> None:
    path = place(data)
    assert inspector.sniff(path, "", filename) == media_type
    profile = parser.profile(path, media_type)
    assert not isinstance(profile, Failure)
    assert profile.pages == 0
    window = parser.read(path, media_type, 1, profile.pages)
    assert isinstance(window, WindowText)
    assert outline(window) == expected


def test_an_image_is_a_page_to_be_recognised(
    place: Place, inspector: SandboxedInspector, parser: SandboxedParser
) -> None:
    path = place(saved(Image.effect_noise((120, 80), 50), "TIFF"))
    assert inspector.sniff(path, "image/tiff", "scan.tif") == media.TIFF
    profile = parser.profile(path, media.TIFF)
    assert not isinstance(profile, Failure)
    window = parser.read(path, media.TIFF, 1, profile.pages)
    assert isinstance(window, WindowText)
    assert [(page.page, page.method) for page in window.pages] == [(1, PageMethod.SKIPPED)]


def test_a_pdf_goes_to_the_pdf_engine(place: Place, inspector: SandboxedInspector, parser: SandboxedParser) -> None:
    path = place(text_pdf("A sentence on a page."))
    assert inspector.sniff(path, "application/pdf", "a.pdf") == media.PDF
    window = parser.read(path, media.PDF, 1, 1)
    assert isinstance(window, WindowText)
    assert "A sentence on a page." in " ".join(line.text for line in window.lines)


@pytest.mark.parametrize(
    ("data", "media_type", "code"),
    [
        (word.bomb(30), media.DOCX, FailureCode.TOO_LARGE),
        (word.laughs(), media.DOCX, FailureCode.MALFORMED),
        (word.document("")[:-40], media.DOCX, FailureCode.MALFORMED),
        (compound("EncryptionInfo", "EncryptedPackage"), media.DOCX, FailureCode.ENCRYPTED),
        (pdfs.pdf([pdfs.PageSpec()], passwords=(b"secret", b"owner")), media.PDF, FailureCode.ENCRYPTED),
        (text_pdf("x")[:200], media.PDF, FailureCode.MALFORMED),
        (saved(Image.effect_noise((90, 90), 50))[:900], "image/png", FailureCode.MALFORMED),
        (huge_png(30_000, 30_000), "image/png", FailureCode.TOO_LARGE),
        (b"", "image/png", FailureCode.MALFORMED),
    ],
)
def test_what_must_not_be_read_is_refused_when_it_is_opened(
    place: Place, parser: SandboxedParser, data: bytes, media_type: str, code: FailureCode
) -> None:
    refused = parser.profile(place(data), media_type)
    assert isinstance(refused, Failure)
    assert refused.code is code
    assert not refused.died


@pytest.mark.parametrize("data", [word.bomb(60), word.laughs()])
def test_a_bomb_costs_less_than_a_second_and_200_mebibytes(place: Place, sandbox: SandboxProcess, data: bytes) -> None:
    began = time.monotonic()
    answer = sandbox.client().call(
        "document.profile",
        place(data),
        {**LIMITS.arguments(), "media_type": media.DOCX},
        timeout_s=TIMEOUT_S,
        memory_bytes=MEMORY_BYTES,
    )
    assert isinstance(answer, SandboxReply)
    assert answer.cpu_s < 1
    assert answer.peak_bytes < 200 * MEBIBYTE
    assert time.monotonic() - began < 10


def test_a_reader_that_needs_too_much_memory_is_too_large_and_the_next_document_is_read(
    sandbox: SandboxProcess, place: Place
) -> None:
    narrow = SandboxedParser(Asker(sandbox.client(), TIMEOUT_S, 64 * MEBIBYTE), LIMITS)
    failure = narrow.read(place(b"<i>x</i>" * 4_000_000), media.HTML, 1, 0)
    assert isinstance(failure, Failure)
    assert failure.code is FailureCode.TOO_LARGE
    assert failure.died
    window = narrow.read(place(b"<p>next"), media.HTML, 1, 0)
    assert isinstance(window, WindowText)


def test_a_reader_that_takes_too_long_is_timed_out(sandbox: SandboxProcess, place: Place) -> None:
    hasty = SandboxedParser(Asker(sandbox.client(), 0.2, MEMORY_BYTES), LIMITS)
    failure = hasty.read(place(b"[a](b " * 2_000_000), media.MARKDOWN, 1, 0)
    assert isinstance(failure, Failure)
    assert failure.code is FailureCode.TIMED_OUT
    assert failure.died
