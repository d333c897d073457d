"""One page as a grey picture of a size that can be recognised: large enough to read, small enough to hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import BinaryIO

import pypdfium2 as pdfium
from PIL import Image

from pipeline.engines import media
from pipeline.engines.documents import images
from pipeline.engines.documents.sink import Limits
from pipeline.engines.pdf import document
from pipeline.errors import Failure, FailureCode

# Tesseract reads best at 200 dpi and above; 300 costs twice the time and gains nothing measurable.
TARGET_DPI = 200
# Under this, pictures are enlarged before they are read: a page at 72 dpi went from .37 to .06 character errors.
LOW_DPI = 150
# 200 dpi on A3 is 7.7 million pixels; a page of 14,400 points would be 1,600 million.
MAX_PIXELS = 25_000_000
# A picture that says no resolution and has no more pixels than a full-HD screen is a screenshot or a small copy.
SMALL_PIXELS = 2_100_000
# More than twice, or by another filter, reads no better (tried 2 to 4 on pages of 60 to 96 dpi).
_ENLARGE_UNKNOWN = 2.0
_MAX_ENLARGE = 3.0


@dataclass(frozen=True, slots=True)
class Raster:
    """A page as displayed, in shades of grey. ``dpi`` is what Tesseract is told."""

    picture: Image.Image
    dpi: int


def rasterise(content: BinaryIO, media_type: str, page: int, limits: Limits) -> Raster | Failure:
    """The page (from 1) of a PDF or an image; a failure where the document cannot be opened or has no such page."""
    if media_type == media.PDF:
        return _from_pdf(content, page)
    frame = images.decoded(content, media_type, page, limits)
    return frame if isinstance(frame, Failure) else _from_image(frame)


def _from_pdf(content: BinaryIO, number: int) -> Raster | Failure:
    with document.opened(content) as pdf:
        if isinstance(pdf, Failure):
            return pdf
        try:
            page = pdf[number - 1]
            scale = _scale(page.get_width(), page.get_height(), TARGET_DPI / images.POINTS_PER_INCH)
            bitmap = page.render(scale=scale, grayscale=True)
        except (pdfium.PdfiumError, IndexError):
            return Failure(FailureCode.MALFORMED, f"Page {number} cannot be drawn.")
        return Raster(bitmap.to_pil(), max(1, round(scale * images.POINTS_PER_INCH)))


def _scale(width: float, height: float, wanted: float) -> float:
    """``wanted``, or what keeps width × height × scale² within :data:`MAX_PIXELS`."""
    area = max(1.0, width * height)
    return min(wanted, math.sqrt(MAX_PIXELS / area))


def _from_image(frame: images.Frame) -> Raster:
    factor = 1.0
    if frame.dpi_known:
        if frame.dpi < LOW_DPI:
            factor = min(TARGET_DPI / frame.dpi, _MAX_ENLARGE)
    elif frame.width * frame.height < SMALL_PIXELS:
        factor = _ENLARGE_UNKNOWN
    factor = _scale(frame.width, frame.height, factor)
    dpi = round(frame.dpi * factor) if frame.dpi_known else TARGET_DPI
    if factor == 1.0:
        return Raster(frame.picture, dpi)
    size = (max(1, round(frame.width * factor)), max(1, round(frame.height * factor)))
    resample = Image.Resampling.LANCZOS if factor > 1 else Image.Resampling.BOX
    return Raster(frame.picture.resize(size, resample), dpi)
