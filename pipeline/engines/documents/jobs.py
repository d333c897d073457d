"""The sandbox jobs ``document.profile`` and ``document.read``: everything that is read besides PDF.

Both answer with JSON: a :class:`~pipeline.types.DocumentProfile` or :class:`~pipeline.types.WindowText`, or the
:class:`~pipeline.errors.Failure` that refuses the document. Values at their default are left out of it.
"""

from __future__ import annotations

from typing import BinaryIO

from pydantic import TypeAdapter

from pipeline.engines import media
from pipeline.engines.documents.docx import check_docx, read_docx
from pipeline.engines.documents.html import read_html
from pipeline.engines.documents.images import profile_image, read_image
from pipeline.engines.documents.markdown import read_markdown
from pipeline.engines.documents.sink import Limits, Refused
from pipeline.engines.documents.tabular import read_tabular
from pipeline.engines.documents.text import read_text
from pipeline.engines.media import Reader
from pipeline.errors import Failure
from pipeline.types import DocumentProfile, Json, WindowText

PROFILE_JSON: TypeAdapter[DocumentProfile | Failure] = TypeAdapter(DocumentProfile | Failure)
WINDOW_JSON: TypeAdapter[WindowText | Failure] = TypeAdapter(WindowText | Failure)
# UTF-16 takes two bytes for a character that UTF-8 writes in one; nothing beyond can be kept.
_RAW_PER_TEXT_BYTE = 2


def profile(content: BinaryIO, arguments: dict[str, Json]) -> bytes:
    """Arguments: ``media_type`` and the fields of :class:`Limits`."""
    return PROFILE_JSON.dump_json(
        profile_document(content, str(arguments["media_type"]), Limits.of(arguments)), exclude_defaults=True
    )


def read(content: BinaryIO, arguments: dict[str, Json]) -> bytes:
    """Arguments: ``media_type``, ``first_page``, ``last_page`` and the fields of :class:`Limits`."""
    first, last = int(str(arguments["first_page"])), int(str(arguments["last_page"]))
    return WINDOW_JSON.dump_json(
        read_document(content, str(arguments["media_type"]), first, last, Limits.of(arguments)), exclude_defaults=True
    )


def profile_document(content: BinaryIO, media_type: str, limits: Limits) -> DocumentProfile | Failure:
    """Refuse a document that must not be opened; count an image's pages (other formats here have none)."""
    match media.BY_NAME[media_type].reader:
        case Reader.IMAGE:
            return profile_image(content, media_type, limits)
        case Reader.DOCX:
            return check_docx(content, limits) or DocumentProfile(0)
        case _:
            return DocumentProfile(0)


def read_document(content: BinaryIO, media_type: str, first: int, last: int, limits: Limits) -> WindowText | Failure:
    """The document as blocks, or the pages ``first``..``last`` of an image."""
    try:
        match media.BY_NAME[media_type].reader:
            case Reader.IMAGE:
                return read_image(content, media_type, first, last, limits)
            case Reader.DOCX:
                return read_docx(content, limits)
            case Reader.HTML:
                return read_html(content.read(), limits)
            case Reader.MARKDOWN:
                return read_markdown(_text_bytes(content, limits), limits)
            case Reader.TABULAR:
                return read_tabular(_text_bytes(content, limits), media_type, limits)
            case Reader.TEXT:
                return read_text(_text_bytes(content, limits), limits)
            case reader:
                raise ValueError(f"{media_type} is not read here ({reader})")
    except Refused as refused:
        return refused.failure


def _text_bytes(content: BinaryIO, limits: Limits) -> bytes:
    return content.read(_RAW_PER_TEXT_BYTE * limits.max_text_bytes + _RAW_PER_TEXT_BYTE)
