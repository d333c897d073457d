"""Documents in the formats each set of engines reads: real ones for the sandbox, pretended ones for memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from PIL import Image

from pipeline.engines import media
from pipeline.engines.asking import Asker
from pipeline.engines.inspector import SandboxedInspector
from pipeline.engines.ocr.tesseract import TesseractOcr
from pipeline.engines.parser import SandboxedParser
from pipeline.engines.sandbox.process import SandboxProcess
from pipeline.ports import DocumentParser, FileInspector, OcrProvider
from pipeline.testing.engines import SCANNED, MemoryInspector, MemoryOcr, MemoryParser, pretend_pdf, pretend_png
from tests.inputs import pdfs, pictures
from tests.unit.documents import LIMITS

PDF = media.PDF
PNG = "image/png"
TIMEOUT_S = 60.0
MEMORY_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True)
class Engines:
    inspector: FileInspector
    parser: DocumentParser
    ocr: OcrProvider


class Press(Protocol):
    """Makes documents and the engines that read them."""

    engines: Engines

    def pdf(self, *pages: str) -> Path:
        """A PDF with a line of text on each page; '' is an empty page."""

    def scan(self, *pages: str) -> Path:
        """A PDF of pictures of a line of text each; '' is an empty picture."""

    def picture(self, words: str) -> Path:
        """A PNG that shows these words."""

    def locked_pdf(self) -> Path:
        """A PDF that needs a password."""

    def file(self, content: bytes) -> Path:
        """Any bytes."""


class _Writing:
    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def file(self, content: bytes) -> Path:
        path = self._directory / f"document-{len(list(self._directory.iterdir()))}"
        path.write_bytes(content)
        return path


class MemoryPress(_Writing):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.engines = Engines(MemoryInspector(), MemoryParser(), MemoryOcr())

    def pdf(self, *pages: str) -> Path:
        return self.file(pretend_pdf(*pages))

    def scan(self, *pages: str) -> Path:
        return self.file(pretend_pdf(*(SCANNED + page for page in pages)))

    def picture(self, words: str) -> Path:
        return self.file(pretend_png(words))

    def locked_pdf(self) -> Path:
        return self.file(pretend_pdf("secret", locked=True))


class SandboxPress(_Writing):
    def __init__(self, directory: Path, sandbox: SandboxProcess) -> None:
        super().__init__(directory)
        asker = Asker(sandbox.client(), TIMEOUT_S, MEMORY_BYTES)
        self.engines = Engines(
            SandboxedInspector(asker), SandboxedParser(asker, LIMITS), TesseractOcr(asker, LIMITS, ("eng",))
        )

    def pdf(self, *pages: str) -> Path:
        return self.file(pdfs.pdf([pdfs.text(72, 700, page) if page else b"" for page in pages]))

    def scan(self, *pages: str) -> Path:
        return self.file(pictures.scan_pdf(*map(_drawn, pages)))

    def picture(self, words: str) -> Path:
        return self.file(pictures.saved(_drawn(words)))

    def locked_pdf(self) -> Path:
        return self.file(pdfs.pdf([pdfs.PageSpec()], passwords=(b"secret", b"owner")))


def _drawn(words: str) -> Image.Image:
    return pictures.page(words).crop((0, 0, 1166, 200))


def damaged(press: Press, made: Path) -> Path:
    """The first half of a document."""
    content = made.read_bytes()
    return press.file(content[: len(content) // 2])
