"""Identifier promotion: a hit that has the very code a query asks for goes before one that merely resembles it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline import words
from pipeline.types import Hit, index_text

# A hit with every identifier of the query counts for this much more. Without a boost a chunk has at most 2/61 (first
# in both legs); one that only the keyword leg found, at rank 31 or better, has at least 1/91: three times as much
# puts it before any chunk that has none of the identifiers, and leaves mere mentions further down where they are.
BOOST = 2.0
# «top 5» names nothing; a bare number has to have this many digits to be a name.
SHORTEST_NUMBER = 3


def names(identifiers: Sequence[str]) -> tuple[str, ...]:
    """The identifiers that name something by themselves: not a part of another one, not a small bare number."""
    parts = {part for whole in identifiers for part in words.terms(whole) if part != whole}
    return tuple(one for one in identifiers if one not in parts and not (one.isdigit() and len(one) < SHORTEST_NUMBER))


def promote(hits: Sequence[Hit], identifiers: Sequence[str]) -> tuple[Hit, ...]:
    """The hits in order of fused score times the share of identifiers they have verbatim; scores again of the best.

    ``identifiers`` are terms of :func:`pipeline.words.query_terms`. Without a name among them, or without a hit that
    has one, the order of fusion stands.
    """
    wanted = names(identifiers)
    shares = [_share(hit, wanted) for hit in hits]
    if not any(shares):
        return tuple(hits)
    boosted = [replace(hit, score=hit.score * (1 + BOOST * share)) for hit, share in zip(hits, shares, strict=True)]
    best = max(hit.score for hit in boosted)
    ordered = sorted(boosted, key=lambda hit: (-hit.score, hit.chunk_id))
    return tuple(replace(hit, score=hit.score / best) for hit in ordered)


def _share(hit: Hit, wanted: Sequence[str]) -> float:
    """How much of ``wanted`` stands in the hit, 0..1; whole terms count, so ERR-40211 does not have ERR-4021."""
    if not wanted:
        return 0.0
    present = set(words.terms(index_text(hit.heading_path, hit.content)))
    return sum(one in present for one in wanted) / len(wanted)
