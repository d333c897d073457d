"""Which hits fit into a budget."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from pipeline.retrieval.budget import within
from pipeline.types import ChunkKind, Hit, Location, PageMethod


def hit(words: int) -> Hit:
    content = "word " * words
    return Hit(
        chunk_id=uuid.uuid4(),
        source_id=uuid.uuid4(),
        source_version=1,
        file_id=None,
        title="",
        kind=ChunkKind.TEXT,
        content=content,
        content_hash="",
        heading_path=("Path",),
        location=Location(),
        score=1.0,
        vector=None,
        keyword=None,
        method=PageMethod.NATIVE,
        confidence=None,
        low_confidence=False,
        excerpt=content,
    )


def count(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def test_hits_are_taken_in_order_as_long_as_they_fit() -> None:
    hits = [hit(9), hit(19), hit(4)]
    assert within(hits, 35, count) == tuple(hits)
    assert within(hits, 30, count) == tuple(hits[:2])
    assert within(hits, 15, count) == (hits[0], hits[2])


def test_the_best_hit_is_always_kept() -> None:
    hits = [hit(50), hit(4)]
    assert within(hits, 10, count) == (hits[0],)
    assert within([], 10, count) == ()
