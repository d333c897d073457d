"""Search in memory: every permitted row is looked at, by the plain formulas of ``pipeline.retrieval.fusion``."""

from __future__ import annotations

import math
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipeline.errors import StaleEmbeddingSet
from pipeline.ports import ActiveSet, IndexQuery
from pipeline.retrieval import fusion, outcome
from pipeline.testing.knowledge import MemoryShelf, MemorySource, as_halves, check_vector
from pipeline.types import (
    Chunk,
    Found,
    GenerationRef,
    Hit,
    Json,
    KeywordSignal,
    NothingReason,
    RetrievalOutcome,
    SearchFilters,
    SearchMode,
    VectorSignal,
    chunk_id,
)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """One chunk the caller may see, with its source."""

    ref: GenerationRef
    source: MemorySource
    chunk: Chunk

    @property
    def chunk_id(self) -> uuid.UUID:
        return chunk_id(self.ref.source_id, self.chunk.ordinal)


class MemoryRetriever:
    """Adapter of :class:`pipeline.ports.Retriever` for one tenant of a shelf."""

    def __init__(self, shelf: MemoryShelf, tenant_id: uuid.UUID, *, low_confidence_threshold: float) -> None:
        self._shelf = shelf
        self._tenant = tenant_id
        self._threshold = low_confidence_threshold

    def active_set(self) -> ActiveSet:
        return self._shelf.active_set(self._tenant)

    def search(self, query: IndexQuery) -> RetrievalOutcome:
        if not query.subjects:
            return outcome.nothing(NothingReason.NO_ACCESS)
        if query.mode is not SearchMode.KEYWORD:
            self._check(query)
        permitted = self._permitted(query.subjects)
        total = sum(source.chunk_count for source in permitted.values())
        if not total:
            return outcome.nothing(NothingReason.EMPTY_CORPUS)
        candidates = self._candidates(permitted, query)
        compared, vector_leg = self._vector_leg(candidates, query)
        keyword_leg = self._keyword_leg(permitted, candidates, query)
        hits = self._fused(candidates, vector_leg, keyword_leg, query)
        if not hits:
            return outcome.nothing(NothingReason.BELOW_FLOOR if compared else NothingReason.NO_MATCH)
        remaining = len(candidates)
        return Found(hits, remaining < query.limit and remaining < total, {}, {})

    def _check(self, query: IndexQuery) -> None:
        vector, active = check_vector(query.vector), self.active_set()
        if active.set_id != query.embedding_set:
            raise StaleEmbeddingSet(f"set {active.set_id} is active")
        if len(vector) != active.model.dimensions:
            raise ValueError("a vector of another size than its set's is refused")

    def _permitted(self, subjects: Sequence[str]) -> dict[GenerationRef, MemorySource]:
        return {
            GenerationRef(tenant, source_id, source.published_generation): source
            for (tenant, source_id), source in self._shelf.sources.items()
            if tenant == self._tenant
            and source.auth_subject in subjects
            and source.published_generation is not None
            and source.indexed
            and not source.removed
        }

    def _candidates(
        self, permitted: dict[GenerationRef, MemorySource], query: IndexQuery
    ) -> dict[uuid.UUID, _Candidate]:
        every = [
            _Candidate(ref, source, row.value)
            for ref, source in permitted.items()
            for row in self._shelf.chunks.get(ref, {}).values()
            if row.subject in query.subjects
        ]
        return {one.chunk_id: one for one in every if passes(one.ref.source_id, one.source, one.chunk, query.filters)}

    def _vector_leg(
        self, candidates: dict[uuid.UUID, _Candidate], query: IndexQuery
    ) -> tuple[int, dict[uuid.UUID, VectorSignal]]:
        """How many vectors were compared, and the leg."""
        if query.mode is SearchMode.KEYWORD:
            return 0, {}
        wanted = as_halves(query.vector or ())
        near: dict[uuid.UUID, float] = {}
        for name, one in candidates.items():
            row = self._shelf.vectors.get((one.ref, query.embedding_set), {}).get(one.chunk.ordinal)
            if row is not None and row.subject in query.subjects:
                near[name] = fusion.similarity(_cosine(wanted, row.value))
        close = {name: value for name, value in near.items() if value >= query.absolute_floor}
        leg = _ranked(close)
        return len(near), {name: VectorSignal(rank, close[name]) for name, rank in leg.items()}

    def _keyword_leg(
        self,
        permitted: dict[GenerationRef, MemorySource],
        candidates: dict[uuid.UUID, _Candidate],
        query: IndexQuery,
    ) -> dict[uuid.UUID, KeywordSignal]:
        if query.mode is SearchMode.VECTOR:
            return {}
        total = sum(source.chunk_count for source in permitted.values())
        average = fusion.average_length(sum(source.term_total for source in permitted.values()), total)
        postings = self._postings(permitted, query)
        frequency = Counter(term for counts in postings.values() for term in query.terms if counts[term])
        scores = {
            name: sum(
                fusion.term_score(fusion.term_weight(total, frequency[term]), counts[term], counts.total(), average)
                for term in query.terms
                if counts[term]
            )
            for name, counts in postings.items()
            if name in candidates
        }
        found = {name: round(score, fusion.SCORE_DIGITS) for name, score in scores.items() if score}
        return {name: KeywordSignal(rank, found[name]) for name, rank in _ranked(found).items()}

    def _postings(
        self, permitted: dict[GenerationRef, MemorySource], query: IndexQuery
    ) -> dict[uuid.UUID, Counter[str]]:
        """Term counts of every permitted chunk, whatever the filters say: frequencies are the corpus's."""
        return {
            chunk_id(ref.source_id, ordinal): Counter({one.term: one.count for one in row.value})
            for ref in permitted
            for ordinal, row in self._shelf.terms.get(ref, {}).items()
            if row.subject in query.subjects
        }

    def _fused(
        self,
        candidates: dict[uuid.UUID, _Candidate],
        vector_leg: dict[uuid.UUID, VectorSignal],
        keyword_leg: dict[uuid.UUID, KeywordSignal],
        query: IndexQuery,
    ) -> tuple[Hit, ...]:
        sums = {
            name: fusion.fused(*(leg[name].rank for leg in (vector_leg, keyword_leg) if name in leg))
            for name in vector_leg.keys() | keyword_leg.keys()
        }
        best = max(sums.values(), default=0.0)
        kept = [name for name in sums if sums[name] / best >= query.relative_floor]
        kept.sort(key=lambda name: (-sums[name], name))
        return tuple(
            self._hit(candidates[name], sums[name] / best, vector_leg.get(name), keyword_leg.get(name))
            for name in kept[: max(query.limit, query.candidates)]
        )

    def _hit(self, one: _Candidate, score: float, vector: VectorSignal | None, keyword: KeywordSignal | None) -> Hit:
        chunk = one.chunk
        return Hit(
            chunk_id=one.chunk_id,
            source_id=one.ref.source_id,
            source_version=one.source.published_version,
            file_id=one.source.file_id,
            title=one.source.title,
            kind=chunk.kind,
            content=chunk.content,
            content_hash=chunk.content_hash,
            heading_path=chunk.heading_path,
            location=chunk.location,
            score=score,
            vector=vector,
            keyword=keyword,
            method=chunk.method,
            confidence=chunk.confidence,
            low_confidence=chunk.confidence is not None and chunk.confidence < self._threshold,
            excerpt=outcome.excerpt(chunk.content),
        )


def _ranked(values: dict[uuid.UUID, float]) -> dict[uuid.UUID, int]:
    """The leg's deepest ranks, from 1: highest value first, ties by chunk id."""
    order = sorted(values, key=lambda name: (-values[name], name))[: fusion.LEG_DEPTH]
    return {name: rank for rank, name in enumerate(order, start=1)}


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


def passes(source_id: uuid.UUID, source: MemorySource, chunk: Chunk, filters: SearchFilters) -> bool:
    """Whether a chunk is left after the filters."""
    date = source.document_date or source.created_at
    language = str(chunk.metadata.get("language") or source.language or "")
    checks: tuple[Callable[[], bool], ...] = (
        lambda: not filters.source_ids or source_id in filters.source_ids,
        lambda: not filters.media_types or source.media_type in filters.media_types,
        lambda: filters.date_from is None or date >= filters.date_from,
        lambda: filters.date_to is None or date <= filters.date_to,
        lambda: filters.page is None or filters.page in chunk.location.pages,
        lambda: filters.language is None or f"{language}-".lower().startswith(f"{filters.language}-".lower()),
        lambda: contains({**source.attributes, **chunk.metadata}, filters.metadata),
    )
    return all(check() for check in checks)


def contains(value: Json, asked: Json) -> bool:
    """Postgres's ``jsonb @>``: objects key by key, arrays in any order, scalars by type and value."""
    if isinstance(asked, dict):
        return isinstance(value, dict) and all(
            key in value and contains(value[key], wanted) for key, wanted in asked.items()
        )
    if isinstance(asked, list):
        return isinstance(value, list) and all(any(contains(one, wanted) for one in value) for wanted in asked)
    return isinstance(value, bool) == isinstance(asked, bool) and value == asked
