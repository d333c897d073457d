"""Pictures of text and of none."""

from __future__ import annotations

import io
import struct
import zlib

import pypdfium2
from PIL import Image

from tests.inputs import pdfs

SENTENCES = (
    "The cooling pump reports ERR-4021 when its inlet pressure falls below two bar.",
    "Close the bypass valve, wait ninety seconds and start the pump again.",
    "If the fault returns within an hour, the filter cartridge must be replaced.",
)


def text_pdf(*paragraphs: str, rotate: int = 0) -> bytes:
    """A page of 420 × 300 points with these paragraphs, each a line in 10 point type."""
    content = b"".join(pdfs.text(30, 260 - 24 * number, line, size=10) for number, line in enumerate(paragraphs))
    return pdfs.pdf([pdfs.PageSpec(content, media=(0, 0, 420, 300), rotate=rotate)])


def page(*paragraphs: str, dpi: int = 200) -> Image.Image:
    """The same page as a grey picture."""
    document = pypdfium2.PdfDocument(text_pdf(*paragraphs))
    picture: Image.Image = document[0].render(scale=dpi / 72, grayscale=True).to_pil()
    document.close()
    return picture


def scan_pdf(*pictures: Image.Image, dpi: int = 200) -> bytes:
    """A PDF that holds pictures only, a page each."""
    buffer = io.BytesIO()
    pictures[0].save(buffer, "PDF", save_all=True, append_images=pictures[1:], resolution=dpi)
    return buffer.getvalue()


def saved(picture: Image.Image, form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def huge_png(width: int, height: int) -> bytes:
    """A few bytes that claim to be a picture this large."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(64))) + chunk(b"IEND", b"")
    )
