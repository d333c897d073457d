"""The document parser: every format's reader, each call in a sandbox child. No reader is imported here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import structlog
from pydantic import TypeAdapter

from pipeline.engines import media
from pipeline.engines.asking import Asker
from pipeline.engines.documents.sink import Limits
from pipeline.engines.media import MediaType, Reader
from pipeline.errors import Failure, FailureCode
from pipeline.settings import Settings
from pipeline.stages import tabular
from pipeline.types import DocumentProfile, WindowText

PDF_PROFILE = "pdf.profile"
PDF_READ = "pdf.read"
PDF_TABLES = "pdf.tables"
DOCUMENT_PROFILE = "document.profile"
DOCUMENT_READ = "document.read"

log = structlog.get_logger(__name__)

_PROFILE = TypeAdapter(DocumentProfile)
_WINDOW = TypeAdapter(WindowText)
# Formats whose reader can take any bytes there are: nothing is refused before they are read.
_NEVER_REFUSED = frozenset({Reader.TEXT, Reader.MARKDOWN, Reader.HTML, Reader.TABULAR})


def limits_of(settings: Settings) -> Limits:
    """The limits that readers count against, from the deployment's settings."""
    return Limits(
        max_pages=settings.max_pages,
        max_text_bytes=settings.max_text_bytes,
        max_blocks=settings.max_blocks,
        max_cells=settings.max_cells,
        max_inflated_bytes=settings.max_inflated_bytes,
        max_inflate_ratio=settings.max_inflate_ratio,
        max_image_pixels=settings.max_image_pixels,
    )


class SandboxedParser:
    """:class:`~pipeline.ports.DocumentParser` over all readers. Raises ``TransientError('sandbox', …)``."""

    def __init__(self, asker: Asker, limits: Limits) -> None:
        self._asker = asker
        self._limits = limits

    def profile(self, content: Path, media_type: str) -> DocumentProfile | Failure:
        """Open the document; refuse it (``unsupported-type`` where no reader exists) or count its pages."""
        accepted = _readable(media_type)
        if isinstance(accepted, Failure):
            return accepted
        if accepted.reader in _NEVER_REFUSED:
            return DocumentProfile(0)
        job = PDF_PROFILE if accepted.reader is Reader.PDF else DOCUMENT_PROFILE
        arguments = {**self._limits.arguments(), "media_type": accepted.name}
        return self._asker.ask(job, content, arguments, _PROFILE)

    def read(self, content: Path, media_type: str, first_page: int, last_page: int) -> WindowText | Failure:
        """Read pages ``first_page``..``last_page`` (from 1, inclusive); 1..0 for a document without pages."""
        accepted = _readable(media_type)
        if isinstance(accepted, Failure):
            return accepted
        job = PDF_READ if accepted.reader is Reader.PDF else DOCUMENT_READ
        arguments = {
            **self._limits.arguments(),
            "media_type": accepted.name,
            "first_page": first_page,
            "last_page": last_page,
        }
        window = self._asker.ask(job, content, arguments, _WINDOW)
        if isinstance(window, Failure) or accepted.reader is not Reader.PDF:
            return window
        return self._with_tables(content, window)

    def _with_tables(self, content: Path, window: WindowText) -> WindowText:
        """The window with the tables of its pages. Failing to find them loses the tables and nothing else."""
        pages = tabular.pages_with_cells(window)
        if not pages:
            return window
        found = self._asker.ask(PDF_TABLES, content, {"pages": list(pages)}, _WINDOW)
        if isinstance(found, Failure):
            log.warning("parser.tables_lost", code=found.code, pages=len(pages))
            lost = f"Pages {pages[0]} to {pages[-1]}: tables were read as lines of text, for looking for them failed."
            return replace(window, warnings=(*window.warnings, lost))
        return tabular.with_tables(window, found.tables)


def _readable(media_type: str) -> MediaType | Failure:
    accepted = media.find(media_type)
    if accepted is None:
        return Failure(FailureCode.UNSUPPORTED_TYPE, f"{media_type} is not a supported type.")
    if accepted.reader is None:
        label = accepted.label[0].upper() + accepted.label[1:]
        detail = f"{label} cannot be read here. Convert it to {accepted.convert_to}."
        return Failure(FailureCode.UNSUPPORTED_TYPE, detail)
    return accepted
