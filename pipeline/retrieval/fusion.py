"""The formulas of ranking: BM25, reciprocal rank fusion, the relative floor. The SQL adapter states the same ones."""

from __future__ import annotations

import math

# Cormack, Clarke, Büttcher: Reciprocal Rank Fusion outperforms Condorcet (SIGIR 2009): 60, large beside the ranks
# that matter, so that what both legs like beats what one of them loves.
RRF_K = 60
# Rows each leg gives to fusion.
LEG_DEPTH = 50

# Robertson, Zaragoza: The Probabilistic Relevance Framework: BM25 and Beyond (2009), section 3: good values are
# 1.2 < k1 < 2 and 0.5 < b < 0.8; these are the defaults of Lucene.
BM25_K1 = 1.2
BM25_B = 0.75
# Scores that differ by less are rounding of sums taken in another order: a tie.
SCORE_DIGITS = 9


def term_weight(total: int, frequency: int) -> float:
    """Inverse document frequency of a term in ``frequency`` of ``total`` chunks; Lucene's form, never negative."""
    return math.log((max(total, frequency) + 1) / (frequency + 0.5))


def term_score(weight: float, count: int, length: int, average_length: float) -> float:
    """What ``count`` occurrences in a chunk of ``length`` terms add to its BM25 score."""
    return weight * count * (BM25_K1 + 1) / (count + BM25_K1 * (1 - BM25_B + BM25_B * length / average_length))


def average_length(total_terms: int, total: int) -> float:
    """Mean length of a chunk in terms, at least one."""
    return max(total_terms / total, 1.0) if total else 1.0


def similarity(cosine: float) -> float:
    """Cosine on the scale where unrelated text is near one half: (cosine + 1) / 2."""
    return (cosine + 1) / 2


def fused(*ranks: int | None) -> float:
    """Reciprocal rank fusion over the legs that found a chunk; ranks count from 1."""
    return sum(1 / (RRF_K + rank) for rank in ranks if rank is not None)
