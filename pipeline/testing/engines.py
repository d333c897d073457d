"""Inspector, parser and OCR without a sandbox, over documents whose content a test writes as text.

A pretend PDF begins like a PDF and holds its pages' text; a page that begins with :data:`SCANNED` is a picture of
what follows. A pretend image begins like a PNG and holds the words it shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipeline.engines import media, verdict
from pipeline.engines.media import Reader
from pipeline.errors import Failure, FailureCode
from pipeline.stages.clean import clean_text
from pipeline.types import (
    Block,
    BlockKind,
    Box,
    DocumentProfile,
    Line,
    Page,
    PageMethod,
    RecognisedPage,
    WindowText,
    Word,
)

SCANNED = "[picture] "
_PDF = "%PDF-pretend\n"
# As far as the first pixel a PNG like any other, of one pixel.
_PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00"
_LOCKED = "locked\n"
_DAMAGED = Failure(FailureCode.MALFORMED, "The document is damaged.")
_ENCRYPTED = Failure(FailureCode.ENCRYPTED, "The document needs a password.")
_NO_SUCH_PAGE = Failure(FailureCode.CRASHED, "The parser was asked for a page that is not there.", died=True)


def pretend_pdf(*pages: str, locked: bool = False) -> bytes:
    return (_PDF + (_LOCKED if locked else "") + "\f".join(pages) + "\n%%EOF").encode()


def pretend_png(words: str = "") -> bytes:
    return _PNG + words.encode()


class MemoryInspector:
    """Adapter of :class:`pipeline.ports.FileInspector`: the judging itself, in this process."""

    def sniff(self, content: Path, declared: str, filename: str) -> str | Failure:
        with content.open("rb") as opened:
            return verdict.inspect(opened, declared, filename)


class MemoryParser:
    """Adapter of :class:`pipeline.ports.DocumentParser` over pretend documents; any other type is plain text."""

    def profile(self, content: Path, media_type: str) -> DocumentProfile | Failure:
        pages = _pages(content, media_type)
        return pages if isinstance(pages, Failure) else DocumentProfile(len(pages))

    def read(self, content: Path, media_type: str, first_page: int, last_page: int) -> WindowText | Failure:
        pages = _pages(content, media_type)
        if isinstance(pages, Failure):
            return pages
        if not pages:
            paragraphs = clean_text(content.read_bytes().decode(errors="replace")).split("\n\n")
            kept = (text.strip() for text in paragraphs)
            return WindowText(blocks=tuple(Block(BlockKind.PARAGRAPH, text) for text in kept if text))
        if not 1 <= first_page <= last_page <= len(pages):
            return _NO_SUCH_PAGE
        wanted = range(first_page, last_page + 1)
        return WindowText(
            pages=tuple(Page(number, 612.0, 792.0, method=_method(pages[number - 1])) for number in wanted),
            lines=tuple(line for number in wanted for line in _lines(number, pages[number - 1])),
        )


class MemoryOcr:
    """Adapter of :class:`pipeline.ports.OcrProvider` over pretend documents; ``asked`` are the pages it was given."""

    def __init__(self, *, installed: bool = True, confidence: float = 0.95) -> None:
        self._installed = installed
        self._confidence = confidence
        self.asked: list[int] = []

    def available(self) -> bool:
        return self._installed

    def recognize(
        self,
        content: Path,
        media_type: str,
        pages: Sequence[int],
        languages: Sequence[str],  # noqa: ARG002 - it reads every language
    ) -> tuple[RecognisedPage, ...] | Failure:
        self.asked.extend(pages)
        there = _pages(content, media_type)
        if isinstance(there, Failure):
            return there
        if not all(1 <= page <= len(there) for page in pages):
            return _DAMAGED
        return tuple(self._read(page, there[page - 1].removeprefix(SCANNED).split()) for page in pages)

    def _read(self, page: int, words: Sequence[str]) -> RecognisedPage:
        step = 1 / max(1, len(words))
        boxes = [Box(page, at * step, 0.1, (at + 1) * step, 0.12) for at in range(len(words))]
        read = tuple(Word(word, box, self._confidence, 0, 0) for word, box in zip(words, boxes, strict=True))
        return RecognisedPage(page, read, self._confidence if words else 0.0)


def _pages(content: Path, media_type: str) -> tuple[str, ...] | Failure:
    """The text of each page; none for a type without pages."""
    accepted = media.find(media_type)
    if accepted is None or accepted.reader is None:
        return Failure(FailureCode.UNSUPPORTED_TYPE, f"{media_type} cannot be read.")
    if accepted.reader not in (Reader.PDF, Reader.IMAGE):
        return ()
    data = content.read_bytes()
    if accepted.reader is Reader.IMAGE:
        return (SCANNED + data.removeprefix(_PNG).decode(),) if data.startswith(_PNG) else _DAMAGED
    text = data.decode(errors="replace")
    if not text.startswith(_PDF) or not text.endswith("\n%%EOF"):
        return _DAMAGED
    body = text.removeprefix(_PDF).removesuffix("\n%%EOF")
    return _ENCRYPTED if body.startswith(_LOCKED) else tuple(body.split("\f"))


def _method(text: str) -> PageMethod:
    if text.startswith(SCANNED):
        return PageMethod.SKIPPED
    return PageMethod.NATIVE if text else PageMethod.BLANK


def _lines(page: int, text: str) -> list[Line]:
    if text.startswith(SCANNED):
        return []
    return [
        Line(page, line, Box(page, 0.1, 0.1 + 0.02 * at, 0.9, 0.115 + 0.02 * at), 12.0, order=at)
        for at, line in enumerate(text.splitlines())
    ]
