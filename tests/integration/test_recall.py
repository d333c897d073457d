"""Recall of small tenants beside a big one, through the real statement and under row-level security."""

from __future__ import annotations

import heapq
import math
import random
import uuid
from collections.abc import Iterator, Sequence

import pytest

from pipeline.entrypoints.embedded.services import EmbeddedServices
from pipeline.ports import IndexQuery
from pipeline.testing.knowledge import as_halves
from pipeline.types import Found, GenerationRef, SearchFilters, SearchMode
from tests.contract.libraries import OTHER_EMBEDDER, Passage, PostgresLibrary, document

BIG = 20_000
PER_SOURCE = 200
DIMENSIONS = OTHER_EMBEDDER.model().dimensions
K = 10
QUERIES = 20


@pytest.fixture(scope="module")
def library(services: EmbeddedServices) -> Iterator[PostgresLibrary]:
    made = PostgresLibrary(services)
    yield made
    made.close()


@pytest.fixture(scope="module")
def neighbour(library: PostgresLibrary) -> uuid.UUID:
    """A tenant whose vectors crowd around every query: an index over all rows would find its rows only."""
    tenant = library.tenant()
    library.use_other_set(tenant)
    chance = random.Random(1)
    for _ in range(BIG // PER_SOURCE):
        store(library, tenant, [around(chance, one) for one in range(PER_SOURCE)], with_chunks=False)
    return tenant


def axis(number: int) -> list[float]:
    return [1.0 if at == number % DIMENSIONS else 0.0 for at in range(DIMENSIONS)]


def around(chance: random.Random, number: int, spread: float = 0.05) -> list[float]:
    return [value + chance.gauss(0, spread) for value in axis(number)]


def store(
    library: PostgresLibrary, tenant: uuid.UUID, vectors: Sequence[Sequence[float]], *, with_chunks: bool = True
) -> GenerationRef:
    """A published source of these vectors; chunks are only needed of what may be returned."""
    ref = GenerationRef(tenant, uuid.uuid4(), 1)
    library.source(tenant, document("unused"), ref.source_id)
    with library.stores(ref) as (knowledge, index, _):
        if with_chunks:
            knowledge.replace_chunks(ref, [Passage(f"chunk {at}").chunk(at) for at in range(len(vectors))])
        index.put(ref, library.retriever(tenant).active_set().set_id, dict(enumerate(vectors)))
    library.publish(ref, len(vectors), len(vectors))
    return ref


@pytest.mark.parametrize("share", [0.01, 0.001])
def test_a_small_tenant_finds_its_nearest_rows(library: PostgresLibrary, neighbour: uuid.UUID, share: float) -> None:
    tenant = library.tenant()
    library.use_other_set(tenant)
    chance = random.Random(2)
    vectors = [[chance.gauss(0, 1) for _ in range(DIMENSIONS)] for _ in range(int(BIG * share))]
    ref = store(library, tenant, vectors)
    retriever = library.retriever(tenant)
    set_id = retriever.active_set().set_id
    right = returned = 0
    for number in range(QUERIES):
        query = around(chance, number)
        outcome = retriever.search(
            IndexQuery(
                subjects=("team:red",),
                mode=SearchMode.VECTOR,
                text="",
                terms=(),
                vector=tuple(query),
                embedding_set=set_id,
                absolute_floor=0.0,
                relative_floor=0.0,
                limit=K,
                filters=SearchFilters(),
            )
        )
        assert isinstance(outcome, Found)
        assert all(hit.source_id == ref.source_id for hit in outcome.hits)
        returned += len(outcome.hits)
        nearest = {uuid.uuid5(ref.source_id, str(at)) for at in exact(vectors, query)}
        right += len(nearest & {hit.chunk_id for hit in outcome.hits})
    assert returned == K * QUERIES
    assert right / (K * QUERIES) >= 0.98


def exact(vectors: Sequence[Sequence[float]], query: Sequence[float]) -> list[int]:
    """Ordinals of the nearest vectors by cosine, in the precision the index keeps."""
    wanted = as_halves(query)

    def cosine(ordinal: int) -> float:
        kept = as_halves(vectors[ordinal])
        length = math.hypot(*kept)
        return sum(one * other for one, other in zip(wanted, kept, strict=True)) / length

    return heapq.nlargest(K, range(len(vectors)), key=cosine)
