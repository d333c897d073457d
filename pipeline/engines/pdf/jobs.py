"""The two sandbox jobs of the PDF engine: ``pdf.profile`` and ``pdf.read``.

Both take the document as an open file and answer with JSON: a :class:`~pipeline.types.DocumentProfile` or
:class:`~pipeline.types.WindowText`, or the :class:`~pipeline.errors.Failure` that refuses the document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

import pypdfium2 as pdfium
from pydantic import TypeAdapter

from pipeline.engines.pdf import document
from pipeline.engines.pdf.pages import read_page
from pipeline.errors import Failure
from pipeline.types import DocumentProfile, Json, WindowText

# Built with the module, because a sandbox child is forked from a process that has imported it.
PROFILE_JSON: TypeAdapter[DocumentProfile | Failure] = TypeAdapter(DocumentProfile | Failure)
WINDOW_JSON: TypeAdapter[WindowText | Failure] = TypeAdapter(WindowText | Failure)


def profile(content: BinaryIO, arguments: Mapping[str, Json]) -> bytes:
    """Open the document and count its pages. Arguments: ``max_pages``.

    Refuses with ``encrypted``, ``malformed`` (no pages included) or ``too-many-pages``.
    """
    return PROFILE_JSON.dump_json(_profile(content, _number(arguments, "max_pages")))


def read(content: BinaryIO, arguments: Mapping[str, Json]) -> bytes:
    """Read pages ``first_page``..``last_page`` (from 1, inclusive). Arguments: both, and ``max_pages``.

    A page that cannot be read comes back without a size, without lines and with a warning.
    """
    first, last = _number(arguments, "first_page"), _number(arguments, "last_page")
    return WINDOW_JSON.dump_json(_read(content, first, last, _number(arguments, "max_pages")))


def _profile(content: BinaryIO, max_pages: int) -> DocumentProfile | Failure:
    with document.opened(content) as pdf:
        if isinstance(pdf, Failure):
            return pdf
        pages = document.count_pages(pdf, max_pages)
        return pages if isinstance(pages, Failure) else DocumentProfile(pages, document.title_of(pdf))


def _read(content: BinaryIO, first: int, last: int, max_pages: int) -> WindowText | Failure:
    with document.opened(content) as pdf:
        if isinstance(pdf, Failure):
            return pdf
        pages = document.count_pages(pdf, max_pages)
        if isinstance(pages, Failure):
            return pages
        if not 1 <= first <= last <= pages:
            raise ValueError(f"pages {first}..{last} are not within 1..{pages}")
        return _window(pdf, first, last)


def _window(pdf: pdfium.PdfDocument, first: int, last: int) -> WindowText:
    read_pages = [read_page(pdf, number) for number in range(first, last + 1)]
    return WindowText(
        pages=tuple(page.page for page in read_pages),
        lines=tuple(line for page in read_pages for line in page.lines),
        title=document.title_of(pdf),
        warnings=tuple(f"Page {page.page.page}: {page.page.warning}" for page in read_pages if page.page.warning),
    )


def _number(arguments: Mapping[str, Json], name: str) -> int:
    value = arguments[name]
    if not isinstance(value, int):
        raise TypeError(f"{name} is a whole number")
    return value
