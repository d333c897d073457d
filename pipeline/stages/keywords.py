"""Keywords: the terms of a chunk and how often each stands in it."""

from __future__ import annotations

from collections import Counter

from pipeline import words
from pipeline.types import TermCount


def terms_of(text: str) -> tuple[TermCount, ...]:
    """The distinct terms of a chunk's indexed text in order of first appearance; empty when it has no word.

    The length of a chunk, as BM25 needs it, is the sum of the counts.
    """
    return tuple(TermCount(term, count) for term, count in Counter(words.terms(text)).items())
