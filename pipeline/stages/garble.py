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
# Shares at which a sign begins to count and at which it says all. Two fifths of code are neither letter, digit nor
# sentence punctuation, and hardly any text has more than three fifths of anything but letters and digits.
_ODD = (0.4, 0.8)
_WORDLESS = (0.6, 0.9)
_ENOUGH_SHOWN = 20
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

    The worst of four signs: lost characters (controls, private use, U+FFFD, unassigned), characters outside letters,
    digits and punctuation, hardly any letter or digit, and a mean word length no alphabet has. Bullets of symbol fonts
    and leaders do not count.
    """
    lost = odd = letters = shown = 0
    for char, times in Counter(_FILLERS.sub(r"\1", _BULLETS.sub("", drawn))).items():
        if char.isspace() or char in _HARMLESS:
            continue
        shown += times
        if char.isalnum():
            letters += times
        elif char not in _SENTENCE:
            category = unicodedata.category(char)
            if char == "\ufffd" or category in _LOST:
                lost += times
            elif category[0] == "M":
                letters += times
            else:
                odd += times
    if not shown:
        return 0.0
    scores = (
        _LOST_WEIGHT * lost / shown,
        _between(odd / shown, *_ODD),
        _between(1 - letters / shown, *_WORDLESS) if shown >= _ENOUGH_SHOWN else 0.0,
        _length_score(lines),
    )
    return round(min(1.0, max(0.0, *scores)), 3)


def _between(share: float, free: float, full: float) -> float:
    return (share - free) / (full - free)


def _length_score(lines: Iterable[str]) -> float:
    words = [word for line in lines for word in line.split() if word[:1].isalpha()]
    letters = sum(map(len, words))
    if letters < _ENOUGH_LETTERS or any(map(_UNSPACED.search, words)):
        return 0.0
    mean = letters / len(words)
    return 0.0 if _SHORTEST_MEAN <= mean <= _LONGEST_MEAN else _LENGTH_SCORE
