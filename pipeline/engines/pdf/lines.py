"""Runs of characters to lines of text, still in content-stream order.

A line ends where the next run stands elsewhere or beyond a gap wider than words leave: the cells of a table's row and
the columns of a page stay apart, and the document pass decides which of the two they are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pipeline.engines.pdf.runs import HYPHEN, WIDEST_GAP, Run
from pipeline.stages.clean import clean_text
from pipeline.stages.frame import Rect, from_frame
from pipeline.types import Line

# All in units of the font height. Kerning takes less; a gap this wide is a space even where PDFium saw none.
_WORD_GAP = 0.2
# How far a run may reach back over the line before it and still belong to it.
_OVERLAP = 0.5
# Share of the smaller of two heights that must be common for two runs to stand on one line.
_SAME_LINE = 0.5
# From this share of a line's characters on, the line is bold, italic or monospaced.
_MOSTLY = 0.8
# Text smaller than this, in points, is not read by a person.
_SMALLEST_VISIBLE = 1.0

SOFT_HYPHEN = "\u00ad"
# At the end of a line: PDFium's mark, and what typesetting programs put there and nobody types.
_LINE_END_HYPHENS = (HYPHEN, SOFT_HYPHEN, "\u2010")

# Latin and Armenian presentation forms: each stands for the letters it was drawn from. Other compatibility characters
# (superscripts, fractions, full width) mean something by their form and stay.
_LIGATURES = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
    0xFB13: "մն",
    0xFB14: "մե",
    0xFB15: "մի",
    0xFB16: "վն",
    0xFB17: "մխ",
    0x00A0: " ",
}
# Accents that typesetting programs draw as glyphs of their own, before the letter they belong to.
_ACCENT = re.compile(r"([¨´ˇ˚])([^\W\d_])")
_LAST_COMPOSED = "\u017f"
_COMBINING = {"¨": "\u0308", "´": "\u0301", "ˇ": "\u030c", "˚": "\u030a"}
_SPACES = re.compile(r"[ \t\n]+")


@dataclass(frozen=True, slots=True)
class PageShape:
    """A page as displayed: number from 1, size in points, /Rotate in degrees clockwise."""

    page: int
    width: float
    height: float
    rotation: int


class _Open:
    """A line being put together."""

    def __init__(self, run: Run) -> None:
        self.runs = [run]
        self.parts = [run.text]
        self.core = run
        self.u0, self.v0, self.u1, self.v1 = run.rect

    def gap_before(self, run: Run) -> float | None:
        """The gap to a run that stands on this line, in font heights; None when it stands elsewhere."""
        core = self.core
        if run.angle != core.angle or run.invisible != core.invisible:
            return None
        common = min(core.rect.v1, run.rect.v1) - max(core.rect.v0, run.rect.v0)
        height = min(core.rect.v1 - core.rect.v0, run.rect.v1 - run.rect.v0)
        if common < _SAME_LINE * height:
            return None
        unit = max(core.size, run.size, 0.1)
        after, before = (run.rect.u0 - self.u1) / unit, (self.u0 - run.rect.u1) / unit
        # The nearer side counts: right-to-left text goes on to the left.
        gap = after if abs(after) <= abs(before) else before
        return gap if -_OVERLAP <= gap <= WIDEST_GAP else None

    def add(self, run: Run, gap: float) -> None:
        before, after = self.parts[-1][-1:], run.text[:1]
        if (run.spaced or gap > _WORD_GAP) and not before.isspace() and not after.isspace():
            self.parts.append(" ")
        self.parts.append(run.text)
        self.runs.append(run)
        if len(run.text) > len(self.core.text):
            self.core = run
        rect = run.rect
        self.u0, self.v0 = min(self.u0, rect.u0), min(self.v0, rect.v0)
        self.u1, self.v1 = max(self.u1, rect.u1), max(self.v1, rect.v1)


def lines_of(runs: Iterable[Run], shape: PageShape) -> Iterator[Line]:
    """The page's lines in content-stream order, text cleaned, boxes in displayed page space."""
    order = 0
    for opened in _grouped(runs):
        text = _text(opened)
        if not text:
            continue
        yield _line(opened, text, shape, order)
        order += 1


def _grouped(runs: Iterable[Run]) -> Iterator[_Open]:
    current: _Open | None = None
    spaced = False
    for run in runs:
        if not run.text or run.text.isspace():
            spaced = True
            continue
        run.spaced = run.spaced or spaced
        spaced = False
        gap = current.gap_before(run) if current is not None else None
        if current is None or gap is None:
            if current is not None:
                yield current
            current = _Open(run)
        else:
            current.add(run, gap)
    if current is not None:
        yield current


def _text(opened: _Open) -> str:
    raw = "".join(opened.parts).rstrip()
    if raw.isascii() and raw.isprintable():
        joins = False
    else:
        joins = raw.endswith(_LINE_END_HYPHENS)
        raw = clean_text((raw[:-1] if joins else raw).replace(HYPHEN, "-").translate(_LIGATURES))
    if "  " in raw or "\t" in raw or "\n" in raw:
        keep = _mostly(opened, [run for run in opened.runs if run.font.monospace])
        raw = raw.replace("\t", "    ").replace("\n", " ") if keep else _SPACES.sub(" ", raw)
    raw = _ACCENT.sub(_composed, raw.strip())
    return raw + SOFT_HYPHEN if joins and raw else raw


def _composed(match: re.Match[str]) -> str:
    letter = unicodedata.normalize("NFC", match[2] + _COMBINING[match[1]])
    return letter if len(letter) == 1 and letter <= _LAST_COMPOSED else match[0]


def expand_ligatures(text: str) -> str:
    """``text`` with the letters that its ligatures stand for."""
    return text if text.isascii() else text.translate(_LIGATURES)


def _line(opened: _Open, text: str, shape: PageShape, order: int) -> Line:
    runs = opened.runs
    if len(runs) == 1:
        size = runs[0].size
    else:
        sizes: Counter[float] = Counter()
        for run in runs:
            sizes[round(run.size, 1)] += len(run.text)
        size = sizes.most_common(1)[0][0]
    angle = (shape.rotation + opened.core.angle) % 360
    box = from_frame(Rect(opened.u0, opened.v0, opened.u1, opened.v1), shape.page, shape.width, shape.height, angle)
    unseen = opened.core.invisible or size < _SMALLEST_VISIBLE or box.x0 >= box.x1 or box.y0 >= box.y1
    return Line(
        page=shape.page,
        text=text,
        box=box,
        size=round(size, 2),
        bold=_mostly(opened, [run for run in runs if run.font.bold]),
        italic=_mostly(opened, [run for run in runs if run.font.italic]),
        monospace=_mostly(opened, [run for run in runs if run.font.monospace]),
        hidden=unseen,
        order=order,
        angle=angle,
    )


def _mostly(opened: _Open, chosen: list[Run]) -> bool:
    if not chosen:
        return False
    if len(chosen) == len(opened.runs):
        return True
    whole = sum(len(run.text) for run in opened.runs)
    return sum(len(run.text) for run in chosen) >= _MOSTLY * whole
