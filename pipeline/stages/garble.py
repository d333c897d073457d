"""How damaged a page's own text is: fonts without a usable map give text that no reader and no index can use."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

# From this score on a page's text is worth less than what OCR would read.
GARBLED = 0.25
# From this score on a page carries a warning although its text is kept.
DAMAGED = 0.1

# A page with a twentieth of its characters lost is damaged, with a tenth it is garbled: their share counts this much.
_LOST_WEIGHT = 2.5
# Tables and code reach three tenths of characters that are neither letter, digit nor sentence punctuation.
_ODD_FREE, _ODD_FULL = 0.3, 0.7
# Words of natural language in an alphabet are between these lengths on average.
_SHORTEST_MEAN, _LONGEST_MEAN = 1.4, 25.0
_LENGTH_SCORE = 0.5
_ENOUGH_LETTERS = 80

_FILLERS = re.compile(r"([.\-_=*·•…\s])\1{2,}")
_BULLETS = re.compile("^[\uf000-\uf0ff]", re.MULTILINE)
_SENTENCE = frozenset(".,;:!?'\"()-–—’‘“”/%&…،؟。、，«»•")
_LOST = frozenset({"Cc", "Cf", "Co", "Cn", "Cs"})
_HARMLESS = frozenset("\t\n\r\u00ad\u200b\u200c\u200d\u200e\u200f")
# Thai, Lao, Burmese, Khmer and the scripts of East Asia write words without spaces between them.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\U0010ffff]")


def garble_score(drawn: str, lines: Iterable[str]) -> float:
    """0 (sound) to 1 (useless) for the visible text of one page: as drawn, before any cleaning, and as lines.

    The worst of three signs: lost characters (controls, private use, U+FFFD, unassigned), characters outside letters,
    digits and punctuation, and a mean word length no alphabet has. Bullets of symbol fonts and leaders do not count.
    """
    text = _FILLERS.sub(r"\1", _BULLETS.sub("", drawn))
    if text.isascii() and text.isprintable():
        lost = 0
        odd = sum(1 for char in text if not char.isalnum() and char != " " and char not in _SENTENCE)
    else:
        lost, odd = _count(text)
    shown = len(text) - text.count(" ") - text.count("\n") - text.count("\r")
    if shown <= 0:
        return 0.0
    lost_score = _LOST_WEIGHT * lost / shown
    odd_score = (odd / shown - _ODD_FREE) / (_ODD_FULL - _ODD_FREE)
    return round(min(1.0, max(0.0, lost_score, odd_score, _length_score(lines))), 3)


def _count(text: str) -> tuple[int, int]:
    lost = odd = 0
    for char, times in Counter(text).items():
        if char.isalnum() or char.isspace() or char in _SENTENCE or char in _HARMLESS:
            continue
        category = unicodedata.category(char)
        if char == "\ufffd" or category in _LOST:
            lost += times
        elif category[0] != "M":
            odd += times
    return lost, odd


def _length_score(lines: Iterable[str]) -> float:
    words = [word for line in lines for word in line.split() if word[:1].isalpha()]
    letters = sum(map(len, words))
    if letters < _ENOUGH_LETTERS or any(map(_UNSPACED.search, words)):
        return 0.0
    mean = letters / len(words)
    return 0.0 if _SHORTEST_MEAN <= mean <= _LONGEST_MEAN else _LENGTH_SCORE
