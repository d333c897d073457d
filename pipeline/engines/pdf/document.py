"""Opening a PDF: what is refused, how many pages there really are, what it calls itself."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from pipeline.errors import Failure, FailureCode
from pipeline.stages.clean import clean_text

# FPDF_ERR_PASSWORD and FPDF_ERR_SECURITY: a password is needed, or a security handler that PDFium does not know.
_ENCRYPTED_CODES = frozenset({raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY})

# PDFium believes a page tree's /Count up to a million. Asking for a page that is not there costs microseconds.
_MOST_PAGES_COUNTED = 100_000
# Pages missing one after the other until the rest of what /Count promises counts as not there.
_MISSING_IN_A_ROW = 64

_MAX_TITLE_CHARS = 500


@contextmanager
def opened(content: BinaryIO) -> Iterator[pdfium.PdfDocument | Failure]:
    """The open document, or ``encrypted`` or ``malformed``. An empty user password opens by itself."""
    try:
        document = pdfium.PdfDocument(content.read())
    except pdfium.PdfiumError as problem:
        yield _refusal(problem.err_code)
        return
    try:
        yield document
    finally:
        document.close()


def _refusal(code: int) -> Failure:
    if code in _ENCRYPTED_CODES:
        return Failure(FailureCode.ENCRYPTED, "The PDF can only be opened with a password.")
    return Failure(FailureCode.MALFORMED, "The PDF is damaged and cannot be opened.")


def count_pages(document: pdfium.PdfDocument, max_pages: int) -> int | Failure:
    """How many pages can really be had: found by asking for each, whatever the page tree's /Count says.

    ``too-many-pages`` names the count and ``max_pages``; a document without a page is ``malformed``.
    """
    promised = len(document)
    ceiling = min(promised, max(max_pages, _MOST_PAGES_COUNTED) + 1)
    size = raw.FS_SIZEF()
    present = missing = 0
    for index in range(ceiling):
        if raw.FPDF_GetPageSizeByIndexF(document, index, size):
            present, missing = index + 1, 0
        elif (missing := missing + 1) > _MISSING_IN_A_ROW:
            break
    if present == 0:
        return Failure(FailureCode.MALFORMED, "The PDF has no pages.")
    if present > max_pages:
        many = f"{present:,}" if present < ceiling or present == promised else f"more than {present - 1:,}"
        return Failure(FailureCode.TOO_MANY_PAGES, f"The document has {many} pages; the limit is {max_pages:,}.")
    return present


def title_of(document: pdfium.PdfDocument) -> str | None:
    """The title in the document's information dictionary, cleaned; None when there is none."""
    length = raw.FPDF_GetMetaText(document, b"Title", None, 0)
    if length <= 2:
        return None
    buffer = ctypes.create_string_buffer(length)
    raw.FPDF_GetMetaText(document, b"Title", buffer, length)
    text = buffer.raw[: length - 2].decode("utf-16-le", "surrogatepass")
    return " ".join(clean_text(text).split())[:_MAX_TITLE_CHARS] or None
