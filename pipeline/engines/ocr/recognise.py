"""Tesseract on one picture, and once more the other way up when it was unsure."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import pytesseract
from PIL import Image, ImageStat

from pipeline.engines.ocr.raster import Raster
from pipeline.errors import DocmillError
from pipeline.stages.clean import clean_text
from pipeline.types import Box, Word

# Tesseract's word confidence is honest: .95 on clean pages, .39 on turned ones. Under this a page is bad or turned.
UNSURE = 0.6
# Turning costs a second reading; not begun with less than this left.
_MIN_RETRY_S = 5.0
# A page whose shades hardly differ holds nothing to read.
_BLANK_DEVIATION = 2.0
# pytesseract's name for transposing by so many degrees clockwise.
_TURNS = MappingProxyType(
    {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_90}
)
_WORD_LEVEL = 5
# Shorter words are as tall as they are wide.
_TELLING_CHARS = 4
_HANDED_OVER_AS = "PPM"


@dataclass(frozen=True, slots=True)
class Reading:
    """Words in displayed page space, their mean confidence, and the clockwise turn that made the page upright."""

    words: tuple[Word, ...]
    confidence: float
    rotation: int = 0


class ReadingTimedOut(DocmillError):
    """Tesseract did not finish in the time it was given."""


class Recogniser:
    """Reads rasters in the given languages until ``deadline`` (of the monotonic clock)."""

    def __init__(self, languages: str, deadline: float) -> None:
        self._languages = languages
        self._deadline = deadline

    def read(self, raster: Raster, page: int) -> Reading:
        """The best of reading the page as it is and, when that is unsure, turned.

        Raises :class:`ReadingTimedOut` when the first reading does not end in time, and MemoryError.
        """
        if _is_blank(raster.picture):
            return Reading((), 0.0)
        best = self._read_turned(raster, page, 0)
        if best.confidence >= UNSURE:
            return best
        try:
            for turn in self._turns(raster):
                if self._remaining() < _MIN_RETRY_S:
                    break
                other = self._read_turned(raster, page, turn)
                if _better(other, best):
                    best = other
        except (ReadingTimedOut, pytesseract.TesseractError):
            # The first reading stands; it is flagged by its confidence.
            return best
        return best

    def _turns(self, raster: Raster) -> Iterator[int]:
        """The turn Tesseract's script detection suggests; every turn where there is too little text for it."""
        try:
            found = self._run(pytesseract.image_to_osd, raster.picture, raster.dpi)
        except pytesseract.TesseractError:
            yield from _TURNS
            return
        turn = int(found["rotate"]) % 360
        if turn in _TURNS:
            yield turn

    def _read_turned(self, raster: Raster, page: int, turn: int) -> Reading:
        picture = raster.picture.transpose(_TURNS[turn]) if turn else raster.picture
        table = self._run(pytesseract.image_to_data, picture, raster.dpi, lang=self._languages)
        words = tuple(_words(table, page, picture.size, turn))
        return Reading(words, _mean_confidence(words), turn or _lies(words, picture.size))

    def _run(
        self, program: Callable[..., dict[str, Any]], picture: Image.Image, dpi: int, **more: str
    ) -> dict[str, Any]:
        """One run of Tesseract. Handed over unpacked: making a PNG of a noisy scan takes half a second."""
        picture.format = _HANDED_OVER_AS
        options = {"config": f"--dpi {dpi}", "timeout": self._remaining(), "output_type": pytesseract.Output.DICT}
        try:
            return program(picture, **options, **more)
        except pytesseract.TesseractError as problem:
            if problem.status == -signal.SIGABRT:
                # What C++ does when it cannot allocate.
                raise MemoryError from problem
            raise
        except RuntimeError as problem:
            # The only other one that pytesseract raises: its timeout.
            raise ReadingTimedOut from problem

    def _remaining(self) -> float:
        # Zero would mean no limit.
        return max(0.1, self._deadline - time.monotonic())


def _is_blank(picture: Image.Image) -> bool:
    return ImageStat.Stat(picture).stddev[0] < _BLANK_DEVIATION


def _better(new: Reading, old: Reading) -> bool:
    """Whether a reading is surer of more: confidence weighed by how much text it stands for."""
    return new.confidence * _characters(new.words) > old.confidence * _characters(old.words)


def _characters(words: tuple[Word, ...]) -> int:
    return sum(len(word.text) for word in words)


def _mean_confidence(words: tuple[Word, ...]) -> float:
    """The mean over characters, so that specks read as punctuation weigh little; 0 without words."""
    total = _characters(words)
    return sum(word.confidence * len(word.text) for word in words) / total if total else 0.0


def _lies(words: tuple[Word, ...], size: tuple[int, int]) -> int:
    """The clockwise turn that makes a page upright which Tesseract could read on its side; 0 when it stands."""
    long = [word for word in words if len(word.text) >= _TELLING_CHARS]
    tall = [word for word in long if (word.box.y1 - word.box.y0) * size[1] > (word.box.x1 - word.box.x0) * size[0]]
    if len(tall) * 2 <= len(long):
        return 0
    downwards = sum(
        1 if after.box.y0 > before.box.y0 else -1 for before, after in pairwise(words) if before.line == after.line
    )
    return 270 if downwards > 0 else 90


def _words(table: dict[str, list[str]], page: int, size: tuple[int, int], turn: int) -> Iterator[Word]:
    lines: dict[tuple[int, ...], int] = {}
    paragraphs: dict[tuple[int, ...], int] = {}
    for index, level in enumerate(table["level"]):
        text = clean_text(str(table["text"][index])).strip()
        confidence = float(table["conf"][index])
        if int(level) != _WORD_LEVEL or not text or confidence < 0:
            continue
        block, paragraph, line = (int(table[name][index]) for name in ("block_num", "par_num", "line_num"))
        box = [int(table[name][index]) for name in ("left", "top", "width", "height")]
        yield Word(
            text=text,
            box=_displayed(page, box, size, turn),
            confidence=min(1.0, confidence / 100),
            line=lines.setdefault((block, paragraph, line), len(lines)),
            paragraph=paragraphs.setdefault((block, paragraph), len(paragraphs)),
        )


def _displayed(page: int, box: list[int], size: tuple[int, int], turn: int) -> Box:
    """A box on the turned picture as fractions of the page as displayed."""
    left, top, width, height = box
    x0, x1 = _fraction(left, size[0]), _fraction(left + width, size[0])
    y0, y1 = _fraction(top, size[1]), _fraction(top + height, size[1])
    match turn:
        case 90:
            return Box(page, y0, 1 - x1, y1, 1 - x0)
        case 180:
            return Box(page, 1 - x1, 1 - y1, 1 - x0, 1 - y0)
        case 270:
            return Box(page, 1 - y1, x0, 1 - y0, x1)
        case _:
            return Box(page, x0, y0, x1, y1)


def _fraction(pixels: int, of: int) -> float:
    return round(min(1.0, max(0.0, pixels / of)), 5)
