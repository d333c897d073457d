"""What a page shows beside text: asked only of pages whose text says little."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import pypdfium2.raw as raw

from pipeline.engines.pdf.runs import PageArea

# Enough to know what a page is made of; a plan may hold a million strokes.
_MAX_OBJECTS = 5_000
_MAX_DEPTH = 6


@dataclass(slots=True)
class Drawing:
    """``image_share`` is the part of the page that images cover, at most 1; ``segments`` counts path segments."""

    image_share: float = 0.0
    images: int = 0
    segments: int = 0


@dataclass(slots=True)
class _Budget:
    left: int = _MAX_OBJECTS


def survey(page: raw.FPDF_PAGE, area: PageArea) -> Drawing:
    """Images and strokes of an open page, forms included, from its first 5,000 objects."""
    drawing = Drawing()
    budget = _Budget()
    for index in range(max(0, raw.FPDFPage_CountObjects(page))):
        if budget.left <= 0:
            break
        _look(raw.FPDFPage_GetObject(page, index), None, area, drawing, budget, 0)
    drawing.image_share = min(1.0, drawing.image_share)
    return drawing


def _look(
    item: raw.FPDF_PAGEOBJECT,
    outer: raw.FPDF_PAGEOBJECT | None,
    area: PageArea,
    drawing: Drawing,
    budget: _Budget,
    depth: int,
) -> None:
    """Count one object. ``outer`` is the outermost form it stands in, whose bounds are in page space."""
    budget.left -= 1
    kind = raw.FPDFPageObj_GetType(item)
    if kind == raw.FPDF_PAGEOBJ_IMAGE:
        drawing.images += 1
        drawing.image_share += _share(outer or item, area)
    elif kind == raw.FPDF_PAGEOBJ_PATH:
        drawing.segments += max(0, raw.FPDFPath_CountSegments(item))
    elif kind == raw.FPDF_PAGEOBJ_SHADING:
        drawing.segments += 1
    elif kind == raw.FPDF_PAGEOBJ_FORM and depth < _MAX_DEPTH:
        for index in range(max(0, raw.FPDFFormObj_CountObjects(item))):
            if budget.left <= 0:
                return
            _look(raw.FPDFFormObj_GetObject(item, index), outer or item, area, drawing, budget, depth + 1)


def _share(item: raw.FPDF_PAGEOBJECT, area: PageArea) -> float:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    whole = (area.right - area.left) * (area.top - area.bottom)
    if whole <= 0 or not raw.FPDFPageObj_GetBounds(item, left, bottom, right, top):
        return 0.0
    width = min(right.value, area.right) - max(left.value, area.left)
    height = min(top.value, area.top) - max(bottom.value, area.bottom)
    return max(0.0, width) * max(0.0, height) / whole
