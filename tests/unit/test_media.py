"""The list of accepted media types, exactly the contract's."""

from __future__ import annotations

import pytest

from pipeline.engines import media
from pipeline.engines.media import Reader

READABLE = {
    "pdf": Reader.PDF,
    "png": Reader.IMAGE,
    "jpg": Reader.IMAGE,
    "webp": Reader.IMAGE,
    "tiff": Reader.IMAGE,
    "gif": Reader.IMAGE,
    "bmp": Reader.IMAGE,
    "txt": Reader.TEXT,
    "md": Reader.MARKDOWN,
    "html": Reader.HTML,
    "csv": Reader.TABULAR,
    "tsv": Reader.TABULAR,
    "docx": Reader.DOCX,
}
STORED_ONLY = [
    "heic",
    "xml",
    "json",
    "rst",
    "org",
    "doc",
    "odt",
    "rtf",
    "pptx",
    "ppt",
    "odp",
    "xlsx",
    "xls",
    "ods",
    "eml",
    "msg",
    "epub",
    "mp3",
    "wav",
    "m4a",
    "flac",
    "ogg",
    "mp4",
    "webm",
]


def test_every_type_of_the_contract_is_accepted_and_no_other() -> None:
    assert {media.BY_EXTENSION[each].name for each in [*READABLE, *STORED_ONLY]} == media.ACCEPTED_NAMES
    assert not any("*" in name for name in media.ACCEPTED_NAMES)
    assert media.find("image/svg+xml") is None
    assert media.media_type_for("drawing.svg") is None


@pytest.mark.parametrize(("extension", "reader"), READABLE.items())
def test_what_is_read_now(extension: str, reader: Reader) -> None:
    assert media.BY_EXTENSION[extension].reader is reader


@pytest.mark.parametrize("extension", STORED_ONLY)
def test_what_is_only_stored_names_what_to_convert_to(extension: str) -> None:
    found = media.BY_EXTENSION[extension]
    assert found.reader is None
    assert found.convert_to


def test_extensions_are_read_from_the_last_part_of_a_name() -> None:
    assert media.media_type_for("Q3 Report.final.PDF") == "application/pdf"
    assert media.media_type_for("C:\\notes\\a.md") == "text/markdown"
    assert media.media_type_for("archive.pdf/readme") is None
    assert media.media_type_for("README") is None


def test_other_names_of_a_type_and_parameters_are_understood() -> None:
    assert media.normalise("Text/HTML; charset=utf-8") == "text/html"
    assert media.normalise("image/jpg") == "image/jpeg"
    assert media.normalise("application/octet-stream") == ""
