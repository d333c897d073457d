"""Rows of text to running text: where a word was divided at the end of a line, and where its hyphen is its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

SOFT_HYPHEN = "\u00ad"

_WORD = re.compile(r"\w+(?:-\w+)*")
_LAST = re.compile(r"([\w-]*?)(\w+)$")
_FIRST = re.compile(r"\w+")
# First parts that are hardly ever the first syllable of an undivided word.
_COMPOUNDING = frozenset({"self", "non", "half", "well", "cross", "quasi", "semi", "pseudo"})
# Two parts of at least this many letters that are both words of the document are a compound of them.
_WORD_CHARS = 5
# Scripts written without spaces, where the end of a line is no space either. Korean has spaces.
_UNSPACED = re.compile("[\u0e00-\u0eff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")


class Joiner:
    """Joins rows. The words of the document itself decide where a hyphen is doubtful."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = texts
        self._words: frozenset[str] | None = None

    def join(self, before: str, after: str) -> str:
        """Both as one text. ``before`` may end with U+00AD, the mark of a hyphen at the end of a line."""
        if before.endswith(SOFT_HYPHEN):
            stem = before[:-1]
            return stem + after if self._divided(stem, after) else f"{stem}-{after}"
        if not before or not after:
            return before + after
        if before[-1] == "-" and before[-2:-1].isalnum() and after[0].islower():
            return before + after
        if _UNSPACED.match(before[-1]) and _UNSPACED.match(after[0]):
            return before + after
        return f"{before} {after}"

    def _divided(self, stem: str, after: str) -> bool:
        last, first = _LAST.search(stem), _FIRST.match(after)
        if last is None or first is None or not after[0].islower():
            return False
        left, right = last.group(2), first.group()
        if last.group(1) or len(left) == 1 or not left.isalpha() or (left.isupper() and len(left) > 1):
            return False
        left, right = left.lower(), right.lower()
        known = self._vocabulary()
        whole, parted = left + right in known, f"{left}-{right}" in known
        if whole != parted:
            return whole
        if not whole and len(left) >= _WORD_CHARS and len(right) >= _WORD_CHARS and left in known and right in known:
            return False
        return left not in _COMPOUNDING and not (left == "co" and right[0] in "oe")

    def _vocabulary(self) -> frozenset[str]:
        if self._words is None:
            self._words = frozenset(word for text in _undivided(self._texts) for word in _WORD.findall(text.lower()))
        return self._words


def _undivided(texts: Iterable[str]) -> Iterator[str]:
    """The texts without the two parts of a word divided between them, which are no words of their own."""
    divided = False
    for text in texts:
        rest = _FIRST.sub("", text, count=1) if divided else text
        divided = text.endswith(SOFT_HYPHEN)
        yield _LAST.sub("", rest[:-1]) if divided else rest


def without_mark(text: str) -> str:
    """A text that nothing follows: the mark of a hyphen at its end is the hyphen again."""
    return text[:-1] + "-" if text.endswith(SOFT_HYPHEN) else text
