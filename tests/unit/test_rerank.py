"""Identifier promotion."""

from __future__ import annotations

import uuid

from pipeline import words
from pipeline.retrieval.fusion import fused
from pipeline.retrieval.rerank import names, promote
from pipeline.types import ChunkKind, Hit, Location, PageMethod


def hit(content: str, score: float, number: int, heading_path: tuple[str, ...] = ()) -> Hit:
    return Hit(
        chunk_id=uuid.UUID(int=number),
        source_id=uuid.UUID(int=0),
        source_version=1,
        file_id=None,
        title="",
        kind=ChunkKind.TEXT,
        content=content,
        content_hash="",
        heading_path=heading_path,
        location=Location(),
        score=score,
        vector=None,
        keyword=None,
        method=PageMethod.NATIVE,
        confidence=None,
        low_confidence=False,
        excerpt=content,
    )


def identifiers(query: str) -> tuple[str, ...]:
    return tuple(term for term in words.query_terms(query) if words.is_identifier(term))


def test_the_exact_code_beats_its_neighbour() -> None:
    neighbour, exact = hit("ERR-4022: the tank is full", 1.0, 1), hit("ERR-4021: the tank is empty", 0.6, 2)
    promoted = promote([neighbour, exact], identifiers("what does err-4021 mean"))
    assert [one.content for one in promoted] == [exact.content, neighbour.content]
    assert promoted[0].score == 1.0
    assert 0 < promoted[1].score < 1


def test_a_code_inside_a_longer_one_is_not_it() -> None:
    hits = [hit("ERR-40211 and XERR-4021", 1.0, 1), hit("see ERR\u20114021.", 0.4, 2)]
    assert promote(hits, identifiers("ERR-4021"))[0].content == "see ERR\u20114021."


def test_a_code_in_the_heading_counts() -> None:
    hits = [hit("the tank is full", 1.0, 1), hit("the tank is empty", 0.5, 2, ("Errors", "ERR-4021"))]
    assert promote(hits, identifiers("ERR-4021"))[0].content == "the tank is empty"


def test_common_words_and_small_numbers_promote_nothing() -> None:
    hits = [hit("our priorities", 1.0, 1), hit("top 5 priorities 5 5", 0.9, 2)]
    assert promote(hits, identifiers("top 5 priorities")) == tuple(hits)
    assert promote(hits, ()) == tuple(hits)
    assert names(identifiers("in 2026 invoice INV-77, v1.2 and 42")) == ("2026", "inv-77", "v1.2")


def test_without_a_hit_that_has_the_code_the_order_of_fusion_stands() -> None:
    hits = [hit("ERR-4022", 1.0, 2), hit("ERR-4023", 0.9, 1)]
    assert promote(hits, identifiers("ERR-4021")) == tuple(hits)
    assert promote([], identifiers("ERR-4021")) == ()


def test_ties_after_promotion_go_by_chunk_id() -> None:
    hits = [hit("A-1", 0.5, 3), hit("A-1", 0.5, 2), hit("A-1", 0.5, 1)]
    assert [one.chunk_id.int for one in promote(hits, ("a-1",))] == [1, 2, 3]


def test_the_boost_does_what_its_comment_says() -> None:
    """The keyword leg's 31st alone passes first in both legs, the 50th does not."""
    best = fused(1, 1)
    for rank, passes in ((31, True), (50, False)):
        hits = [hit("unlike", 1.0, 1), hit("ERR-4021", fused(rank) / best, 2)]
        assert (promote(hits, ("err-4021",))[0].content == "ERR-4021") is passes
