"""What every FileInspector says: content, declared type and name agree, or the file is refused with a reason."""

from __future__ import annotations

import pytest

from pipeline.engines import media
from pipeline.errors import Failure, FailureCode
from tests.contract.presses import PNG, Press
from tests.inputs import word
from tests.inputs.compound import compound

DOCX = word.document(word.paragraph("x"))


@pytest.mark.parametrize(
    ("content", "declared", "filename", "expected"),
    [
        (b"plain words\n", "text/plain", "a.txt", media.PLAIN),
        (b"plain words\n", "", "a", media.PLAIN),
        (b"# Title\n", "text/plain", "a.md", media.MARKDOWN),
        (b"# Title\n", "application/octet-stream", "a.md", media.MARKDOWN),
        (b"a,b\n1,2\n", "application/vnd.ms-excel", "a.csv", media.CSV),
        (b"a,b\n1,2\n", "TEXT/CSV; charset=utf-8", "a.txt", media.CSV),
        (b"<p>words</p>", "text/html", "page", media.HTML),
        ("Größe\n".encode("cp1252"), "text/plain", "a.txt", media.PLAIN),
        (DOCX, media.DOCX, "a.docx", media.DOCX),
        (DOCX, "", "a.docx", media.DOCX),
    ],
)
def test_what_agrees_is_accepted(press: Press, content: bytes, declared: str, filename: str, expected: str) -> None:
    assert press.engines.inspector.sniff(press.file(content), declared, filename) == expected


def test_pdf_and_picture_are_known_by_their_bytes(press: Press) -> None:
    sniff = press.engines.inspector.sniff
    assert sniff(press.pdf("words"), "application/pdf", "a.pdf") == media.PDF
    assert sniff(press.pdf("words"), "", "upload") == media.PDF
    assert sniff(press.picture("words"), PNG, "a.png") == PNG


@pytest.mark.parametrize(
    ("content", "declared", "filename", "code"),
    [
        (b"", "text/plain", "a.txt", FailureCode.MALFORMED),
        (b"plain words\n", "application/pdf", "a.pdf", FailureCode.UNSUPPORTED_TYPE),
        (b"plain words\n", "", "a.pdf", FailureCode.UNSUPPORTED_TYPE),
        (b"plain words\n", "text/plain", "a.png", FailureCode.UNSUPPORTED_TYPE),
        (b"plain words\n", "text/html", "a.html", FailureCode.UNSUPPORTED_TYPE),
        (b"plain words\n", "application/x-unheard-of", "a.txt", FailureCode.UNSUPPORTED_TYPE),
        (b"plain words\n", "", "a.exe", FailureCode.UNSUPPORTED_TYPE),
        (b"\x7fELF\x02\x01\x01" + bytes(200), "text/plain", "a.txt", FailureCode.UNSUPPORTED_TYPE),
        (DOCX, "text/plain", "a.txt", FailureCode.UNSUPPORTED_TYPE),
        (DOCX, media.XLSX, "a.xlsx", FailureCode.UNSUPPORTED_TYPE),
        (DOCX[: len(DOCX) // 2], media.DOCX, "a.docx", FailureCode.MALFORMED),
        (word.without_main_part(), media.DOCX, "a.docx", FailureCode.MALFORMED),
        (compound("EncryptionInfo", "EncryptedPackage"), media.DOCX, "a.docx", FailureCode.ENCRYPTED),
        (b"junk before\x00\x01\x02\x03" * 20 + b"%PDF-1.7", "application/pdf", "a.pdf", FailureCode.MALFORMED),
    ],
)
def test_what_disagrees_is_refused_with_a_reason(
    press: Press, content: bytes, declared: str, filename: str, code: FailureCode
) -> None:
    refused = press.engines.inspector.sniff(press.file(content), declared, filename)
    assert isinstance(refused, Failure), refused
    assert refused.code is code
    assert refused.detail.endswith(".")
    assert not refused.died


def test_a_picture_that_calls_itself_a_pdf_is_refused_and_named(press: Press) -> None:
    refused = press.engines.inspector.sniff(press.picture("words"), "application/pdf", "scan.pdf")
    assert isinstance(refused, Failure)
    assert refused == Failure(FailureCode.UNSUPPORTED_TYPE, "scan.pdf is a PNG image, not a PDF.")
