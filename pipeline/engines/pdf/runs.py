"""One page's text as PDFium holds it: runs of characters that one text object drew, in content-stream order.

Everything per character goes through two calls of PDFium's C interface and everything else is asked once per run,
because a call through ctypes costs more than what PDFium does inside it.
"""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import pypdfium2.raw as raw

from pipeline.stages.frame import Rect, union

# A page anyone reads has a few thousand characters in a few hundred runs; so many take seconds and 100 MB.
MAX_PAGE_CHARS = 1_000_000
MAX_PAGE_RUNS = 200_000

# How PDFium marks a hyphen at the end of a line, whatever character it was.
HYPHEN = "\x02"

_BOLD_NAME = re.compile(r"bold|black|heavy|demi(?!-?light)|[-,]bd\b|-medi\b|^(?:cm|sf|lm)\w*bx", re.IGNORECASE)
# Names that say what weight they have; PDFium guesses it from the width of the stems, which misleads it in italics.
_PLAIN_NAME = re.compile(r"regular|roman|italic|oblique|book|light|medium|psmt|-reg\b", re.IGNORECASE)
_ITALIC_NAME = re.compile(r"italic|oblique|[-,]it\b", re.IGNORECASE)
_MONO_NAME = re.compile(r"mono|courier|consol|typewriter|menlo|fixed|(?<!uni)code|cmtt|\btt\b", re.IGNORECASE)
_FIXED_PITCH, _ITALIC, _FORCE_BOLD = 1 << 0, 1 << 6, 1 << 18
_BOLD_WEIGHT = 700

# Scripts in which PDFium gives the characters of a run from right to left.
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")

# Text whose characters take more room than this on average, in font heights, has stretched spaces or is in capitals.
_STRETCHED = 0.65
# A gap wider than this, in font heights, may be a stretched space, a gutter or the border of a cell: the document pass
# tells them apart.
WIDEST_GAP = 0.8
_WORD = re.compile(r"\S+")

# Below this reported size (points) fonts are scaled by means the report does not show; the box is taken instead.
_SMALLEST_REPORTED = 3.0

_GENERATED_NEWLINES = frozenset({10, 13})
_LAST_CODE, _REPLACEMENT = 0x10FFFF, 0xFFFD

# The same functions with an address as result: building a pointer object for every character doubles the cost.
_text_object_at = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(
    ctypes.cast(raw.FPDFText_GetTextObject, ctypes.c_void_p).value or 0
)
_font_of = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(
    ctypes.cast(raw.FPDFTextObj_GetFont, ctypes.c_void_p).value or 0
)
_unicode_at = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_void_p, ctypes.c_int)(
    ctypes.cast(raw.FPDFText_GetUnicode, ctypes.c_void_p).value or 0
)


class Font(NamedTuple):
    """What a font says about the text it draws."""

    bold: bool
    italic: bool
    monospace: bool


@dataclass(slots=True)
class Run:
    """Characters of one text object. ``rect`` is in the frame of text turned by ``angle`` on the unrotated page.

    ``spaced`` says that PDFium saw a word gap before the run. ``size`` is the font height in points.
    """

    text: str
    rect: Rect
    angle: int
    size: float
    font: Font
    invisible: bool
    spaced: bool


@dataclass(slots=True)
class _Style:
    angle: int
    size: float
    font: Font
    invisible: bool


class PageArea(NamedTuple):
    """The visible part of a page in its unrotated user space, in points."""

    left: float
    bottom: float
    right: float
    top: float


@dataclass(slots=True)
class RunReader:
    """Reads the runs of one open page; ``cut`` afterwards when the page held more than the limits allow."""

    text_page: raw.FPDF_TEXTPAGE
    area: PageArea
    cut: bool = False
    _fonts: dict[int, Font] = field(default_factory=dict)

    def runs(self) -> list[Run]:
        """Runs in content-stream order, at most :data:`MAX_PAGE_RUNS` of them and :data:`MAX_PAGE_CHARS` characters."""
        runs = list(islice(self._runs(), MAX_PAGE_RUNS + 1))
        self.cut = self.cut or len(runs) > MAX_PAGE_RUNS
        return runs[:MAX_PAGE_RUNS]

    def _runs(self) -> Iterator[Run]:
        handle = ctypes.cast(self.text_page, ctypes.c_void_p).value
        held = int(raw.FPDFText_CountChars(self.text_page))
        total = min(held, MAX_PAGE_CHARS)
        self.cut = held > total
        first, current, styled, spaced = 0, None, None, False
        style: _Style | None = None
        codes: list[int] = []
        for index in range(total):
            drawn_by = _text_object_at(handle, index)
            if drawn_by != current:
                if current is not None and style is not None:
                    yield from self._split(codes, first, style, spaced)
                    spaced = False
                codes, first, current = [], index, drawn_by
                if drawn_by is not None and drawn_by != styled:
                    style, styled = self._style(index, drawn_by), drawn_by
            code = _unicode_at(handle, index)
            if drawn_by is None:
                spaced = spaced or code not in _GENERATED_NEWLINES
            codes.append(code if code <= _LAST_CODE else _REPLACEMENT)
        if current is not None and style is not None and codes:
            yield from self._split(codes, first, style, spaced)

    def _split(self, codes: list[int], first: int, style: _Style, spaced: bool) -> Iterator[Run]:
        """One run, or several where spaces were stretched until what stands between them are cells."""
        run = self._run(codes, first, style, spaced)
        if " " not in run.text or run.rect.u1 - run.rect.u0 <= _STRETCHED * run.size * len(codes):
            yield run
            return
        start = 0
        for word in _WORD.finditer(run.text):
            if word.start() and self._gap(first, word, style.angle) > WIDEST_GAP * run.size:
                yield self._run(codes[start : word.start()], first + start, style, spaced)
                start, spaced = word.start(), True
        yield self._run(codes[start:], first + start, style, spaced)

    def _gap(self, first: int, word: re.Match[str], angle: int) -> float:
        """How far a word begins behind the end of what stands before its space."""
        before = word.start() - 1
        while before > 0 and word.string[before].isspace():
            before -= 1
        return self._rect(first + word.start(), angle).u0 - self._rect(first + before, angle).u1

    def _run(self, codes: list[int], first: int, style: _Style, spaced: bool) -> Run:
        text = "".join(map(chr, codes))
        last = first + len(codes) - 1
        ends = (first, last) if last > first else (first,)
        if len(codes) > 2 and not text.isascii() and _RIGHT_TO_LEFT.search(text):
            rect = union([self._rect(index, style.angle) for index in range(first, last + 1)])
        else:
            rect = union([self._rect(index, style.angle) for index in ends])
        size = style.size if style.size >= _SMALLEST_REPORTED else max(style.size, rect.v1 - rect.v0)
        return Run(text, rect, style.angle, size, style.font, style.invisible, spaced)

    def _rect(self, index: int, angle: int) -> Rect:
        box = raw.FS_RECTF()
        raw.FPDFText_GetLooseCharBox(self.text_page, index, box)
        area = self.area
        if angle == 0:
            return Rect(box.left - area.left, area.top - box.top, box.right - area.left, area.top - box.bottom)
        if angle == 90:
            return Rect(area.top - box.top, area.right - box.right, area.top - box.bottom, area.right - box.left)
        if angle == 180:
            return Rect(area.right - box.right, box.bottom - area.bottom, area.right - box.left, box.top - area.bottom)
        return Rect(box.bottom - area.bottom, box.left - area.left, box.top - area.bottom, box.right - area.left)

    def _style(self, index: int, drawn_by: int) -> _Style:
        matrix = raw.FS_MATRIX()
        size = float(raw.FPDFText_GetFontSize(self.text_page, index))
        angle = 0
        if raw.FPDFText_GetMatrix(self.text_page, index, matrix):
            size *= math.hypot(matrix.c, matrix.d)
            if matrix.b or matrix.a < 0:
                # A PDF's y grows upwards, so its positive angle turns against the clock.
                angle = round(-math.degrees(math.atan2(matrix.b, matrix.a)) / 90) * 90 % 360
        handle = ctypes.cast(drawn_by, raw.FPDF_PAGEOBJECT)
        invisible = raw.FPDFTextObj_GetTextRenderMode(handle) == raw.FPDF_TEXTRENDERMODE_INVISIBLE
        return _Style(angle, abs(size), self._font(drawn_by), invisible)

    def _font(self, drawn_by: int) -> Font:
        address = _font_of(drawn_by)
        if address is None:
            return Font(bold=False, italic=False, monospace=False)
        known = self._fonts.get(address)
        if known is None:
            known = self._fonts[address] = _describe(ctypes.cast(address, raw.FPDF_FONT))
        return known


def _describe(font: raw.FPDF_FONT) -> Font:
    length = raw.FPDFFont_GetBaseFontName(font, None, 0)
    buffer = ctypes.create_string_buffer(max(1, length))
    raw.FPDFFont_GetBaseFontName(font, buffer, length)
    name = buffer.value.decode("utf-8", "replace")
    name = name.partition("+")[2] or name
    flags = max(0, raw.FPDFFont_GetFlags(font))
    heavy = raw.FPDFFont_GetWeight(font) >= _BOLD_WEIGHT and _PLAIN_NAME.search(name) is None
    slope = ctypes.c_int()
    slanted = bool(raw.FPDFFont_GetItalicAngle(font, slope)) and slope.value != 0
    return Font(
        bold=heavy or bool(flags & _FORCE_BOLD) or bool(_BOLD_NAME.search(name)),
        italic=slanted or bool(flags & _ITALIC) or bool(_ITALIC_NAME.search(name)),
        monospace=bool(flags & _FIXED_PITCH) or bool(_MONO_NAME.search(name)),
    )
