"""What every adapter of the index holds: chunks, vectors and terms of a generation."""

from __future__ import annotations

import dataclasses
import math
import uuid

import pytest

from pipeline.ports import IndexCounts
from pipeline.types import Box, Chunk, ChunkKind, GenerationRef, Location, PageMethod, TermCount
from tests.contract.libraries import EMBEDDER, Library, Passage, document

SIZE = EMBEDDER.model().dimensions
CHUNKS = tuple(Passage(text).chunk(ordinal) for ordinal, text in enumerate(("harbour", "quay", "pier", "mole")))


@pytest.fixture
def ref(library: Library, tenant: uuid.UUID) -> GenerationRef:
    made = GenerationRef(tenant, uuid.uuid4(), 1)
    library.source(tenant, document("unused"), made.source_id)
    return made


def unit(axis: int) -> tuple[float, ...]:
    return tuple(1.0 if at == axis else 0.0 for at in range(SIZE))


def counts(library: Library, ref: GenerationRef) -> IndexCounts:
    with library.stores(ref) as (knowledge, _, _):
        return knowledge.counts(ref, library.active_set())


def test_chunks_come_back_as_they_were_stored(library: Library, ref: GenerationRef) -> None:
    chunk = Chunk(
        ordinal=0,
        kind=ChunkKind.TABLE,
        content="a | b\n'quoted' %s :x \\ 東京",
        heading_path=('One, "two"', "{three}"),
        location=Location(
            pages=(1, 2), boxes=(Box(1, 0.1, 0.2, 0.3, 0.4),), slide=3, sheet="S", cells="A1:B2", start_s=0.5, end_s=1.5
        ),
        first_block=4,
        last_block=5,
        token_count=6,
        content_hash="0" * 64,
        confidence=0.25,
        method=PageMethod.MIXED,
        metadata={"language": "pt-BR", "nested": {"list": [1, None, True]}},
    )
    with library.stores(ref) as (knowledge, _, _):
        knowledge.replace_chunks(ref, [chunk])
    with library.stores(ref) as (knowledge, _, _):
        assert knowledge.chunks(ref) == (chunk,)


def test_chunks_are_read_in_windows(library: Library, ref: GenerationRef) -> None:
    with library.stores(ref) as (knowledge, _, _):
        knowledge.replace_chunks(ref, CHUNKS[::-1])
        assert knowledge.chunks(ref) == CHUNKS
        assert knowledge.chunks(ref, 1, 2) == CHUNKS[1:3]
        assert knowledge.chunks(ref, 3, 9) == CHUNKS[3:]
        assert knowledge.chunks(ref, 9) == ()
        assert knowledge.chunks(dataclasses.replace(ref, generation=2)) == ()


def test_replacing_leaves_exactly_the_new_chunks(library: Library, ref: GenerationRef) -> None:
    with library.stores(ref) as (knowledge, _, _):
        knowledge.replace_chunks(ref, CHUNKS)
        knowledge.replace_chunks(ref, CHUNKS[:2])
        assert knowledge.chunks(ref) == CHUNKS[:2]
        knowledge.replace_chunks(ref, [])
        assert knowledge.chunks(ref) == ()


def test_counts_are_of_one_generation_and_one_set(library: Library, ref: GenerationRef) -> None:
    assert counts(library, ref) == IndexCounts(0, 0, 0)
    with library.stores(ref) as (knowledge, vectors, keywords):
        knowledge.replace_chunks(ref, CHUNKS)
        vectors.put(ref, library.active_set(), {0: unit(0), 2: unit(2)})
        keywords.put(ref, {0: [TermCount("harbour", 1), TermCount("dues", 2)], 1: [TermCount("quay", 1)], 2: []})
        assert knowledge.counts(ref, library.active_set() + 10_000) == IndexCounts(4, 0, 2)
    assert counts(library, ref) == IndexCounts(4, 2, 2)
    assert counts(library, dataclasses.replace(ref, generation=2)) == IndexCounts(0, 0, 0)


def test_terms_are_replaced(library: Library, ref: GenerationRef) -> None:
    with library.stores(ref) as (_, _, keywords):
        keywords.put(ref, {0: [TermCount("harbour", 1)], 1: [TermCount("quay", 1)]})
        keywords.put(ref, {1: [TermCount("quay", 1)]})
    assert counts(library, ref).keyword_chunks == 1


def test_missing_vectors_are_named_in_order_and_within_the_range(library: Library, ref: GenerationRef) -> None:
    with library.stores(ref) as (knowledge, vectors, _):
        knowledge.replace_chunks(ref, CHUNKS)
        vectors.put(ref, library.active_set(), {1: unit(1)})
        assert vectors.missing(ref, library.active_set(), 0, 3) == (CHUNKS[0], CHUNKS[2], CHUNKS[3])
        assert vectors.missing(ref, library.active_set(), 1, 2) == (CHUNKS[2],)
        vectors.put(ref, library.active_set(), {0: unit(0), 1: unit(5)})
        assert vectors.missing(ref, library.active_set(), 0, 1) == ()
        vectors.put(ref, library.active_set(), {})


def test_unchanged_chunks_keep_their_vectors(library: Library, tenant: uuid.UUID, ref: GenerationRef) -> None:
    second = dataclasses.replace(ref, generation=2)
    moved = tuple(dataclasses.replace(chunk, ordinal=chunk.ordinal + 1) for chunk in CHUNKS[:2])
    with library.stores(ref) as (knowledge, vectors, _):
        knowledge.replace_chunks(ref, CHUNKS)
        vectors.put(ref, library.active_set(), {0: unit(0), 2: unit(2)})
    stranger = GenerationRef(tenant, uuid.uuid4(), 1)
    library.source(tenant, document("unused"), stranger.source_id)
    with library.stores(stranger) as (knowledge, vectors, _):
        knowledge.replace_chunks(stranger, CHUNKS)
        assert vectors.reuse(stranger, library.active_set()) == 0
    with library.stores(second) as (knowledge, vectors, _):
        knowledge.replace_chunks(second, (Passage("new").chunk(0), *moved))
        assert vectors.reuse(second, library.active_set()) == 1
        assert vectors.reuse(second, library.active_set()) == 0
        assert [chunk.content for chunk in vectors.missing(second, library.active_set(), 0, 9)] == ["new", "quay"]


@pytest.mark.parametrize(
    "vector",
    [
        (),
        (1.0,) * (SIZE - 1),
        (1.0,) * (SIZE + 1),
        (0.0,) * SIZE,
        (math.nan,) * SIZE,
        (math.inf,) + (0.0,) * (SIZE - 1),
    ],
)
def test_a_vector_that_nothing_is_near_is_refused(
    library: Library, ref: GenerationRef, vector: tuple[float, ...]
) -> None:
    with library.stores(ref) as (knowledge, vectors, _):
        knowledge.replace_chunks(ref, CHUNKS)
        with pytest.raises(ValueError, match="refused"):
            vectors.put(ref, library.active_set(), {0: unit(0), 1: vector})
    assert counts(library, ref).vectors == 0


def test_a_vector_of_no_set_is_refused(library: Library, ref: GenerationRef) -> None:
    with library.stores(ref) as (knowledge, vectors, _):
        knowledge.replace_chunks(ref, CHUNKS)
        with pytest.raises(ValueError, match="refused"):
            vectors.put(ref, library.active_set() + 10_000, {0: unit(0)})
