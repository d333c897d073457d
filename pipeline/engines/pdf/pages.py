"""One page: its lines, and whether they are all of it."""

from __future__ import annotations

from dataclasses import dataclass

import pypdfium2 as pdfium
import pypdfium2.raw as raw

from pipeline.engines.pdf.drawing import survey
from pipeline.engines.pdf.lines import PageShape, lines_of
from pipeline.engines.pdf.runs import HYPHEN, PageArea, Run, RunReader
from pipeline.stages.garble import DAMAGED, GARBLED, garble_score
from pipeline.types import Line, Page, PageMethod

# A page with fewer visible letters and digits may be a scan with a stamp or a page number on it.
_LITTLE_TEXT = 20
# An image over this share of such a page is its body.
_BODY_IMAGE_SHARE = 0.5
# Letters drawn as outlines have ten to thirty segments each, a frame or a rule has under ten.
_WORTH_READING_SEGMENTS = 100

UNREADABLE = "it could not be read"
GARBLED_TEXT = "its fonts do not say which characters they show, so its text is not usable"
DAMAGED_TEXT = "some of its characters were lost, because a font does not say what they are"
CUT_TEXT = "it holds too much text, and only the first part of it was read"


@dataclass(frozen=True, slots=True)
class ReadPage:
    """A page and its lines."""

    page: Page
    lines: tuple[Line, ...] = ()


def read_page(pdf: pdfium.PdfDocument, number: int) -> ReadPage:
    """Page ``number`` (from 1). ``skipped`` as its method means that it needs OCR and was not yet read by it."""
    handle = raw.FPDF_LoadPage(pdf, number - 1)
    if not handle:
        return _unreadable(number)
    try:
        text = raw.FPDFText_LoadPage(handle)
        if not text:
            return _unreadable(number)
        try:
            return _read(handle, text, number)
        finally:
            raw.FPDFText_ClosePage(text)
    finally:
        raw.FPDF_ClosePage(handle)


def _unreadable(number: int) -> ReadPage:
    """A page without a size: nothing can be drawn either, so OCR is not asked."""
    return ReadPage(Page(number, 0.0, 0.0, method=PageMethod.SKIPPED, warning=UNREADABLE))


def _read(handle: raw.FPDF_PAGE, text: raw.FPDF_TEXTPAGE, number: int) -> ReadPage:
    bounds = raw.FS_RECTF()
    raw.FPDF_GetPageBoundingBox(handle, bounds)
    area = PageArea(bounds.left, bounds.bottom, bounds.right, bounds.top)
    rotation = raw.FPDFPage_GetRotation(handle) % 4 * 90
    across, along = area.right - area.left, area.top - area.bottom
    width, height = (along, across) if rotation in (90, 270) else (across, along)
    reader = RunReader(text, area)
    runs = reader.runs()
    shape = PageShape(number, width, height, rotation)
    lines = tuple(lines_of(runs, shape))
    visible = [line for line in lines if not line.hidden]
    garble = garble_score(_as_drawn(runs), (line.text for line in visible)) if visible else 0.0
    method = _method(handle, area, visible, garble)
    page = Page(
        page=number,
        width=round(width, 2),
        height=round(height, 2),
        rotation=rotation,
        method=method,
        garble=garble,
        warning=_warning(garble, cut=reader.cut),
    )
    return ReadPage(page, lines)


def _as_drawn(runs: list[Run]) -> str:
    return "".join(run.text for run in runs if not run.invisible).replace(HYPHEN, "-")


def _method(handle: raw.FPDF_PAGE, area: PageArea, visible: list[Line], garble: float) -> PageMethod:
    if garble >= GARBLED:
        return PageMethod.SKIPPED
    usable = 0
    for line in visible:
        usable += sum(map(str.isalnum, line.text))
        if usable >= _LITTLE_TEXT:
            return PageMethod.NATIVE
    drawing = survey(handle, area)
    if usable:
        return PageMethod.SKIPPED if drawing.image_share >= _BODY_IMAGE_SHARE else PageMethod.NATIVE
    if drawing.images or drawing.segments >= _WORTH_READING_SEGMENTS:
        return PageMethod.SKIPPED
    return PageMethod.NATIVE if visible else PageMethod.BLANK


def _warning(garble: float, *, cut: bool) -> str | None:
    if garble >= GARBLED:
        return GARBLED_TEXT
    if garble >= DAMAGED:
        return DAMAGED_TEXT
    return CUT_TEXT if cut else None
