"""Keywords: the terms of a chunk and how often each stands in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipeline import words
from pipeline.types import TermCount


def terms_of(text: str) -> tuple[TermCount, ...]:
    """The distinct terms of a chunk's indexed text in order of first appearance; empty when it has no word."""
    return tuple(TermCount(term, count) for term, count in Counter(words.terms(text)).items())


def length_of(terms: Sequence[TermCount]) -> int:
    """The length of a chunk in terms, as BM25 needs it."""
    return sum(term.count for term in terms)
