"""Images as documents: one page each (a TIFF as many as it has frames), without text until OCR has read them.

Size is judged from the header, before a pixel is decoded.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import BinaryIO

import numpy
from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    UnidentifiedImageError,
    WebPImagePlugin,
)

from pipeline.engines.documents.sink import Limits, Refused
from pipeline.errors import Failure, FailureCode
from pipeline.types import DocumentProfile, Page, PageMethod, WindowText

# The only decoder that is tried for each type.
_FORMATS = MappingProxyType(
    {
        "image/png": PngImagePlugin.PngImageFile.format,
        "image/jpeg": JpegImagePlugin.JpegImageFile.format,
        "image/webp": WebPImagePlugin.WebPImageFile.format,
        "image/tiff": TiffImagePlugin.TiffImageFile.format,
        "image/gif": GifImagePlugin.GifImageFile.format,
        "image/bmp": BmpImagePlugin.BmpImageFile.format,
    }
)
# What Pillow raises for files that are not what they should be; warnings are errors here.
_DAMAGE = (
    UnidentifiedImageError,
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    EOFError,
    OverflowError,
    AttributeError,
    RuntimeError,
    Warning,
)
# Exif's tag for which way up the picture was taken.
_ORIENTATION = 0x0112
_SIDEWAYS = frozenset({5, 6, 7, 8})
# A picture that does not say how large it is counts as a screen's.
SCREEN_DPI = 96.0
# What cameras and editors write when they know nothing.
_MEANINGLESS_DPI = frozenset({0, 1, 72, 96})
_MAX_DPI = 2400.0
POINTS_PER_INCH = 72.0


@dataclass(frozen=True, slots=True)
class Frame:
    """One page of an image as displayed: the opened (not yet decoded) picture and its pixels per inch."""

    picture: Image.Image
    width: int
    height: int
    dpi: float
    dpi_known: bool


def profile_image(content: BinaryIO, media_type: str, limits: Limits) -> DocumentProfile | Failure:
    """Count the pages, judge each one's size, and decode the first.

    Refuses with ``too-large``, ``too-many-pages`` or ``malformed``.
    """
    try:
        with _opened(content, media_type) as picture:
            pages = _count(picture, media_type, limits)
            picture.seek(0)
            picture.load()
            return DocumentProfile(pages)
    except Refused as refused:
        return refused.failure
    except _DAMAGE:
        return _damaged()


def read_image(content: BinaryIO, media_type: str, first: int, last: int, limits: Limits) -> WindowText | Failure:
    """The page map of pages ``first``..``last``: sizes in points as displayed, every page still to be recognised."""
    try:
        with _opened(content, media_type) as picture:
            return WindowText(pages=tuple(_page(picture, number, limits) for number in range(first, last + 1)))
    except Refused as refused:
        return refused.failure
    except _DAMAGE:
        return _damaged()


def decoded(content: BinaryIO, media_type: str, page: int, limits: Limits) -> Frame | Failure:
    """One page as it is displayed, in shades of grey on white."""
    try:
        with _opened(content, media_type) as picture:
            frame = _frame(picture, page, limits)
            picture.load()
            upright = ImageOps.exif_transpose(frame.picture) if _orientation(frame.picture) > 1 else frame.picture
            return Frame(_grey(upright), frame.width, frame.height, frame.dpi, frame.dpi_known)
    except Refused as refused:
        return refused.failure
    except _DAMAGE:
        return _damaged()


@contextmanager
def _opened(content: BinaryIO, media_type: str) -> Iterator[Image.Image]:
    content.seek(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Judged here with the deployment's own limit, from the header, before anything is decoded.
        Image.MAX_IMAGE_PIXELS = None
        with Image.open(content, formats=[str(_FORMATS[media_type])]) as picture:
            yield picture


def _count(picture: Image.Image, media_type: str, limits: Limits) -> int:
    """Pages, each within the size limit. Only a TIFF has pages; frames of other formats are an animation."""
    _check_size(picture, limits)
    if _FORMATS[media_type] != TiffImagePlugin.TiffImageFile.format:
        return 1
    pages = 1
    while True:
        try:
            picture.seek(pages)
        except EOFError:
            return pages
        pages += 1
        if pages > limits.max_pages:
            detail = f"The image has more than {limits.max_pages:,} pages, which is the limit."
            raise Refused(FailureCode.TOO_MANY_PAGES, detail)
        _check_size(picture, limits)


def _check_size(picture: Image.Image, limits: Limits) -> None:
    pixels = picture.width * picture.height
    if pixels > limits.max_image_pixels:
        raise Refused(
            FailureCode.TOO_LARGE,
            f"The image has {picture.width:,} × {picture.height:,} = {pixels:,} pixels; "
            f"the limit is {limits.max_image_pixels:,}.",
        )


def _frame(picture: Image.Image, page: int, limits: Limits) -> Frame:
    picture.seek(page - 1)
    _check_size(picture, limits)
    width, height = picture.size
    if _orientation(picture) in _SIDEWAYS:
        width, height = height, width
    dpi = _dpi(picture)
    return Frame(picture, width, height, dpi or SCREEN_DPI, dpi is not None)


def _page(picture: Image.Image, number: int, limits: Limits) -> Page:
    frame = _frame(picture, number, limits)
    if number > 1:
        # The first was decoded when the document was opened.
        picture.load()
    scale = POINTS_PER_INCH / frame.dpi
    return Page(number, frame.width * scale, frame.height * scale, method=PageMethod.SKIPPED)


def _orientation(picture: Image.Image) -> int:
    """Exif's orientation, 1 (upright) where there is none or it cannot be read."""
    try:
        found = picture.getexif().get(_ORIENTATION, 1)
    except _DAMAGE:
        return 1
    return found if found in range(1, 9) else 1


def _dpi(picture: Image.Image) -> float | None:
    """Pixels per inch where the file says something that can be meant."""
    try:
        dpi = float(picture.info["dpi"][0])
    except (KeyError, IndexError, TypeError, ValueError, ZeroDivisionError):
        return None
    return dpi if round(dpi) not in _MEANINGLESS_DPI and 1 < dpi <= _MAX_DPI else None


def _grey(picture: Image.Image) -> Image.Image:
    """Shades of grey; what is transparent is white, as a page is."""
    if picture.mode.startswith("I") or picture.mode == "F":
        # Sixteen and more bits a pixel would be clipped, not scaled.
        values = numpy.asarray(picture, dtype=numpy.float32)
        values -= values.min()
        return Image.fromarray((values * (255.0 / max(float(values.max()), 1.0))).astype(numpy.uint8))
    if picture.has_transparency_data:
        coloured = picture.convert("RGBA")
        page = Image.new("RGBA", coloured.size, "white")
        page.alpha_composite(coloured)
        return page.convert("L")
    return picture.convert("L")


def _damaged() -> Failure:
    return Failure(FailureCode.MALFORMED, "The image is damaged or incomplete and cannot be decoded.")
