"""A search: authorise, interpret, embed, retrieve, promote identifiers."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pipeline.errors import StaleEmbeddingSet, TransientError
from pipeline.ports import ActiveSet, AuthorizationPolicy, EmbeddingProvider, IndexQuery, Retriever
from pipeline.retrieval import budget, outcome, rerank
from pipeline.retrieval.fusion import LEG_DEPTH
from pipeline.retrieval.interpret import Interpretation, interpret
from pipeline.types import (
    EmbeddingModel,
    Found,
    Json,
    NothingReason,
    Principal,
    RetrievalOutcome,
    SearchFilters,
    SearchMode,
)

MAX_LIMIT = 50
DEFAULT_LIMIT = 10


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What a caller asks: ``limit`` is 1..``MAX_LIMIT``, ``budget_tokens`` what the hits may take in all, None for
    any. Tokens are the embedding model's.
    """

    query: str
    mode: SearchMode = SearchMode.HYBRID
    limit: int = DEFAULT_LIMIT
    budget_tokens: int | None = None
    filters: SearchFilters = field(default_factory=SearchFilters)


@dataclass(frozen=True, slots=True)
class SearchConfig:
    """``relative_floor`` is the share of the best fused score under which a hit is dropped, 0..1."""

    relative_floor: float


class SearchService:
    """``retrievers`` gives the retriever of a tenant; its active set says which model the query is embedded with."""

    def __init__(
        self,
        policy: AuthorizationPolicy,
        retrievers: Callable[[uuid.UUID], Retriever],
        embedder: EmbeddingProvider,
        config: SearchConfig,
    ) -> None:
        self._policy = policy
        self._retrievers = retrievers
        self._embedder = embedder
        self._config = config

    def search(self, principal: Principal, request: SearchRequest) -> RetrievalOutcome:
        """Hits with their timings in milliseconds, or why there are none.

        Raises :class:`~pipeline.errors.Invalid` for a query that is empty or too long, ``TransientError('embedder')``
        when the query cannot be embedded, ``TransientError('postgres')``.
        """
        clock = _Clock()
        asked = interpret(request.query)
        with clock.step("authorise"):
            subjects = self._policy.effective_subjects(principal)
        if not subjects:
            return outcome.nothing(NothingReason.NO_ACCESS)
        answer = self._retrieve(self._retrievers(principal.tenant_id), subjects, asked, request, clock)
        if not isinstance(answer, Found):
            return answer
        with clock.step("rerank"):
            hits = rerank.promote(answer.hits, asked.identifiers)[: request.limit]
        if request.budget_tokens is not None:
            hits = budget.within(hits, request.budget_tokens, self._embedder.count_tokens)
        return replace(answer, hits=hits, interpretation=_shown(asked, request), timings_ms=clock.timings())

    def _retrieve(
        self,
        retriever: Retriever,
        subjects: tuple[str, ...],
        asked: Interpretation,
        request: SearchRequest,
        clock: _Clock,
    ) -> RetrievalOutcome:
        try:
            return self._attempt(retriever, subjects, asked, request, clock)
        except StaleEmbeddingSet:
            # A promotion came between embedding and search; it does not come twice.
            return self._attempt(retriever, subjects, asked, request, clock)

    def _attempt(
        self,
        retriever: Retriever,
        subjects: tuple[str, ...],
        asked: Interpretation,
        request: SearchRequest,
        clock: _Clock,
    ) -> RetrievalOutcome:
        embedding_set, floor, vector = 0, 0.0, None
        if request.mode is not SearchMode.KEYWORD:
            with clock.step("embed"):
                active = retriever.active_set()
                embedding_set, floor = active.set_id, active.model.absolute_floor
                vector = self._embed(active, asked.text)
        query = IndexQuery(
            subjects=subjects,
            mode=request.mode,
            text=asked.text,
            terms=asked.terms,
            vector=vector,
            embedding_set=embedding_set,
            absolute_floor=floor,
            relative_floor=self._config.relative_floor,
            limit=request.limit,
            filters=_in_utc(request.filters),
            # A hit further down may have the identifier asked for and be promoted into the answer.
            candidates=LEG_DEPTH if rerank.names(asked.identifiers) else 0,
        )
        with clock.step("search"):
            return retriever.search(query)

    def _embed(self, active: ActiveSet, text: str) -> tuple[float, ...]:
        if _identity(self._embedder.model()) != _identity(active.model):
            raise TransientError(
                "embedder", f"vectors of {active.model.model} are active, {self._embedder.model().model} is configured"
            )
        return self._embedder.embed([text])[0]


def _identity(model: EmbeddingModel) -> tuple[str, str, str, int]:
    return model.provider, model.model, model.version, model.dimensions


def _in_utc(filters: SearchFilters) -> SearchFilters:
    """The filters with dates that name no zone read as UTC, which is what documents' dates are kept in."""
    return replace(filters, date_from=_aware(filters.date_from), date_to=_aware(filters.date_to))


def _aware(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _shown(asked: Interpretation, request: SearchRequest) -> dict[str, Json]:
    return {**asked.as_json(), "mode": request.mode}


class _Clock:
    """Milliseconds by step; a step that runs twice adds up."""

    def __init__(self) -> None:
        self._spent: dict[str, float] = {}
        self._start = time.perf_counter()

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._spent[name] = self._spent.get(name, 0.0) + _ms(start)

    def timings(self) -> dict[str, float]:
        return {**{name: round(spent, 3) for name, spent in self._spent.items()}, "total": round(_ms(self._start), 3)}


def _ms(start: float) -> float:
    return (time.perf_counter() - start) * 1000
