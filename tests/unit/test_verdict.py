"""Content, declared type and extension must agree, or the file is refused in words."""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image

from pipeline.engines import media, verdict
from pipeline.errors import Failure, FailureCode
from tests.inputs import pdfs, word, zips
from tests.inputs.compound import compound
from tests.inputs.pictures import saved

PNG = saved(Image.new("L", (8, 8), 200))
PDF = pdfs.pdf([pdfs.PageSpec()])
HTML = b"<!doctype html><html><body><p>Hello</p></body></html>"
TEXT = b"A sentence, and another; nothing more.\n"


def judge(data: bytes, filename: str, declared: str = "") -> str | Failure:
    return verdict.inspect(io.BytesIO(data), declared, filename)


def refused(data: bytes, filename: str, declared: str = "") -> Failure:
    found = judge(data, filename, declared)
    assert isinstance(found, Failure), found
    return found


@pytest.mark.parametrize(
    ("data", "filename", "declared", "expected"),
    [
        (PDF, "a.pdf", "application/pdf", media.PDF),
        (PDF, "a.pdf", "application/octet-stream", media.PDF),
        (PDF, "a", "", media.PDF),
        (PNG, "a.png", "image/png", "image/png"),
        (PNG, "picture", "", "image/png"),
        # The extension has to agree in family only.
        (PNG, "a.jpg", "image/png", "image/png"),
        (TEXT, "a.txt", "text/plain", media.PLAIN),
        (TEXT, "a.md", "", media.MARKDOWN),
        (TEXT, "a.md", "text/plain", media.MARKDOWN),
        (TEXT, "a.txt", "text/markdown", media.MARKDOWN),
        (TEXT, "README", "application/octet-stream", media.PLAIN),
        (TEXT, "a.csv", "text/csv", media.CSV),
        (TEXT, "a.csv", "application/vnd.ms-excel", media.CSV),
        (TEXT, "a.tsv", "", media.TSV),
        (HTML, "a.html", "text/html; charset=utf-8", media.HTML),
        (HTML, "a.txt", "text/plain", media.PLAIN),
        (b"\xff\xfe" + "Größe".encode("utf-16-le"), "a.txt", "text/plain", media.PLAIN),
        ("Съешь ещё".encode("cp1251"), "a.txt", "", media.PLAIN),
        (b"one stray \x00 NUL among words\n", "a.txt", "text/plain", media.PLAIN),
        (word.document(word.paragraph("x")), "a.docx", "", media.DOCX),
        (compound("WordDocument"), "a.doc", "", media.DOC),
        (compound("Workbook"), "a.xls", "", media.XLS),
        (compound("PowerPoint Document"), "a.ppt", "", media.PPT),
        (compound("__properties_version1.0"), "a.msg", "", media.MSG),
        (b"From: a@example.org\nSubject: x\n\nbody", "a.eml", "", media.EML),
        (b"{\\rtf1 x}", "a.rtf", "", media.RTF),
        (b"{}", "a.json", "", media.JSON),
    ],
)
def test_what_agrees_is_accepted(data: bytes, filename: str, declared: str, expected: str) -> None:
    assert judge(data, filename, declared) == expected


@pytest.mark.parametrize(
    ("data", "filename", "declared", "detail"),
    [
        (PNG, "notes.pdf", "application/pdf", "notes.pdf is a PNG image, not a PDF."),
        (PNG, "notes.pdf", "", "notes.pdf is a PNG image, not a PDF."),
        (PNG, "a.jpg", "image/jpeg", "a.jpg is a PNG image, not a JPEG image."),
        (PNG, "a.txt", "text/plain", "a.txt is a PNG image, not a text file."),
        (PNG, "a.md", "", "a.md is a PNG image, not a Markdown file."),
        (PDF, "a.txt", "application/pdf", "a.txt is a PDF, not a text file."),
        (HTML, "a.pdf", "application/pdf", "a.pdf is an HTML page, not a PDF."),
        (TEXT, "a.docx", "", "a.docx is a text file, not a Word document (DOCX)."),
        (TEXT, "a.html", "text/html", "a.html has no HTML tags: it is a text file, not an HTML page."),
        (TEXT, "a.eml", "", "a.eml is a text file, not an e-mail message (EML)."),
        (TEXT, "a.py", "", ".py is not a supported file type."),
        (TEXT, "a.py", "text/x-python", "text/x-python is not a supported type."),
        (
            b"<svg xmlns='http://www.w3.org/2000/svg'/>",
            "a.svg",
            "image/svg+xml",
            "image/svg+xml is not a supported type.",
        ),
        (b"\x7fELF\x02\x01\x01" + bytes(57), "a.txt", "", "a.txt is a file of an unknown kind, not a text file."),
        (zips.archive({"a": "b"}), "a.docx", "", "a.docx is a zip archive, not a Word document (DOCX)."),
        (zips.archive({"a": "b"}), "a.zip", "application/zip", "application/zip is not a supported type."),
        (compound("Something"), "a.doc", "", "a.doc is a file of an unknown kind, not a Word 97-2003 document (DOC)."),
    ],
)
def test_what_lies_is_refused_in_words(data: bytes, filename: str, declared: str, detail: str) -> None:
    found = refused(data, filename, declared)
    assert found.code is FailureCode.UNSUPPORTED_TYPE
    assert found.detail == detail


@pytest.mark.parametrize("data", [zips.encrypted(word.document(""), "word/document.xml"), compound("EncryptedPackage")])
def test_a_document_with_a_password_is_encrypted(data: bytes) -> None:
    assert refused(data, "a.docx").code is FailureCode.ENCRYPTED


@pytest.mark.parametrize(
    ("data", "filename"),
    [
        (b"", "a.txt"),
        (word.without_main_part(), "a.docx"),
        (word.document("")[:-30], "a.docx"),
        (word.document("") + b"tail", "a.docx"),
        (b"GIF89a" + bytes(20) + PDF, "a.pdf"),
        (PDF + zips.archive({"a": "b"}), "a.pdf"),
        (PNG + zips.archive({"a": "b"}), "a.png"),
        (compound("WordDocument")[:600], "a.doc"),
    ],
)
def test_damage_and_two_formats_at_once_are_malformed(data: bytes, filename: str) -> None:
    assert refused(data, filename).code is FailureCode.MALFORMED


def test_an_office_package_is_what_its_main_part_says() -> None:
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
    assert refused(word.renamed_main_type(word.document(""), kind), "a.docx").detail == (
        "a.docx is an Excel workbook (XLSX), not a Word document (DOCX)."
    )
    macros = word.renamed_main_type(word.document(""), "application/vnd.ms-word.document.macroEnabled.main+xml")
    assert "macros" in refused(macros, "a.docx").detail


def test_an_archive_with_too_many_members_is_not_even_listed() -> None:
    many = zips.archive({str(number): b"" for number in range(5_001)})
    found = refused(many, "a.docx")
    assert found.code is FailureCode.TOO_LARGE
    assert "5,001" in found.detail
    assert "5,000" in found.detail


def test_the_job_answers_in_json() -> None:
    arguments = {"declared": "", "filename": "a.png"}
    assert json.loads(verdict.job(io.BytesIO(PNG), {**arguments})) == "image/png"
    assert json.loads(verdict.job(io.BytesIO(TEXT), {**arguments}))["code"] == "unsupported-type"


def test_a_text_with_stray_damage_is_still_a_text_and_noise_is_not() -> None:
    damaged = b"before\x00after, a whole sentence follows. " + b"\xed\xa0\x80 half a pair\n" + b"x" * 5000
    assert judge(damaged, "note.txt", "text/plain") == "text/plain"
    noise = bytes((number * 197 + 31 * (number // 7)) % 256 for number in range(4000))
    assert isinstance(judge(noise, "note.txt", "text/plain"), Failure)
