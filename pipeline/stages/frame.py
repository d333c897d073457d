"""The reading frame of turned text: where a line stands when the page is held so that the line is upright.

A displayed page measures ``width`` by ``height`` points, origin top left. Text turned clockwise by 0, 90, 180 or 270
degrees is seen in a frame of its own: ``u0``..``u1`` along the line, ``v0``..``v1`` across it, both growing the way one
reads, in points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.types import Box


class Rect(NamedTuple):
    """A rectangle in a reading frame, in points."""

    u0: float
    v0: float
    u1: float
    v1: float


def union(rects: Sequence[Rect]) -> Rect:
    """The smallest rectangle around all of them."""
    return Rect(
        min(rect.u0 for rect in rects),
        min(rect.v0 for rect in rects),
        max(rect.u1 for rect in rects),
        max(rect.v1 for rect in rects),
    )


def to_frame(box: Box, width: float, height: float, angle: int) -> Rect:
    """A box on the displayed page, seen in the frame of text turned by ``angle``."""
    x0, y0, x1, y1 = box.x0 * width, box.y0 * height, box.x1 * width, box.y1 * height
    if angle == 90:
        return Rect(y0, width - x1, y1, width - x0)
    if angle == 180:
        return Rect(width - x1, height - y1, width - x0, height - y0)
    if angle == 270:
        return Rect(height - y1, x0, height - y0, x1)
    return Rect(x0, y0, x1, y1)


def from_frame(rect: Rect, page: int, width: float, height: float, angle: int) -> Box:
    """The box on the displayed page, clipped to it, in fractions of its size."""
    u0, v0, u1, v1 = rect
    if angle == 90:
        x0, y0, x1, y1 = width - v1, u0, width - v0, u1
    elif angle == 180:
        x0, y0, x1, y1 = width - u1, height - v1, width - u0, height - v0
    elif angle == 270:
        x0, y0, x1, y1 = v0, height - u1, v1, height - u0
    else:
        x0, y0, x1, y1 = rect
    return Box(page, _share(x0, width), _share(y0, height), _share(x1, width), _share(y1, height))


def frame_size(width: float, height: float, angle: int) -> tuple[float, float]:
    """The page's extent along and across lines turned by ``angle``, in points."""
    return (height, width) if angle in (90, 270) else (width, height)


def _share(value: float, whole: float) -> float:
    return round(min(1.0, max(0.0, value / whole)), 5) if whole > 0 else 0.0
