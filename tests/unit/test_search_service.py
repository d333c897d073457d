"""The use case of searching, over the index in memory."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.errors import Invalid, TransientError
from pipeline.ports import IndexQuery, Retriever
from pipeline.services.search import SearchConfig, SearchRequest, SearchService
from pipeline.testing.embedding import HashedWords
from pipeline.testing.policy import MemoryPolicy
from pipeline.types import (
    EmbeddingModel,
    Found,
    Nothing,
    NothingReason,
    Principal,
    RetrievalOutcome,
    SearchFilters,
    SearchMode,
)
from tests.contract.libraries import EMBEDDER, MemoryLibrary, add, document
from tests.contract.questions import found, reason


class Listening:
    """EmbeddingProvider that notes what it was asked."""

    def __init__(self, inner: HashedWords) -> None:
        self._inner = inner
        self.asked: list[str] = []

    def model(self) -> EmbeddingModel:
        return self._inner.model()

    def check(self) -> None:
        self._inner.check()

    def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        self.asked.extend(texts)
        return self._inner.embed(texts)

    def count_tokens(self, texts: Sequence[str]) -> tuple[int, ...]:
        return self._inner.count_tokens(texts)


class House:
    """A service over one tenant of a library in memory."""

    def __init__(self) -> None:
        self.library = MemoryLibrary()
        self.tenant = self.library.tenant()
        self.policy = MemoryPolicy()
        self.policy.join(self.tenant, "team:red", "alice")
        self.principal = Principal(self.tenant, "alice")
        self.embedder = Listening(EMBEDDER)
        self.retrievers = self.library.retriever

    def ask(self, query: str, **details: object) -> RetrievalOutcome:
        service = SearchService(self.policy, self.retrievers, self.embedder, SearchConfig(relative_floor=0.4))
        request = SearchRequest(query, **details)  # type: ignore[arg-type]  # the details are the request's own fields
        return service.search(self.principal, request)


@pytest.fixture
def house() -> House:
    return House()


def test_the_exact_identifier_comes_first(house: House) -> None:
    add(
        house.library,
        house.tenant,
        document(
            "What ERR-4022 means: the tank is full and what that means",
            "ERR-4021 is shown when a valve of the reserve tank was left open over night by the last shift on duty",
            *(f"What an error of class {number} means and what it does" for number in range(20)),
        ),
    )
    hits = found(house.ask("what does ERR-4021 mean, what it means", limit=3))
    assert len(hits) == 3
    assert hits[0].content.startswith("ERR-4021")
    assert hits[0].score == 1.0


def test_an_identifier_further_down_than_the_limit_is_promoted(house: House) -> None:
    add(
        house.library,
        house.tenant,
        document("tank valve reserve", "tank valve reserve", "the tank is described in INV-2026-77 of this company"),
    )
    (hit,) = found(house.ask("INV-2026-77 tank valve reserve", limit=1, mode=SearchMode.VECTOR))
    assert "INV-2026-77" in hit.content


def test_an_answer_tells_what_was_asked_and_how_long_it_took(house: House) -> None:
    add(house.library, house.tenant, document("harbour dues"))
    answer = house.ask("  What are\nthe harbour dues of 2026? ")
    assert isinstance(answer, Found)
    assert answer.interpretation["text"] == "What are the harbour dues of 2026?"
    assert answer.interpretation["terms"] == ["harbour", "dues", "2026"]
    assert answer.interpretation["identifiers"] == ["2026"]
    assert answer.interpretation["mode"] == "hybrid"
    assert answer.timings_ms.keys() == {"authorise", "embed", "search", "rerank", "total"}
    assert sum(spent for step, spent in answer.timings_ms.items() if step != "total") <= answer.timings_ms["total"]


def test_only_vectors_need_the_embedder(house: House) -> None:
    add(house.library, house.tenant, document("harbour dues"))
    assert len(found(house.ask("harbour", mode=SearchMode.KEYWORD))) == 1
    assert house.embedder.asked == []
    house.ask("harbour")
    house.ask("dues", mode=SearchMode.VECTOR)
    assert house.embedder.asked == ["harbour", "dues"]


def test_a_caller_without_a_subject_is_told_so_and_nothing_is_embedded(house: House) -> None:
    add(house.library, house.tenant, document("harbour dues"))
    house.principal = replace(house.principal, narrowed_to=("team:blue",))
    assert reason(house.ask("harbour")) is NothingReason.NO_ACCESS
    assert house.embedder.asked == []


def test_a_revocation_counts_for_the_next_question(house: House) -> None:
    add(house.library, house.tenant, document("harbour dues"))
    assert isinstance(house.ask("harbour"), Found)
    house.policy.leave(house.tenant, "team:red", "alice")
    assert reason(house.ask("harbour")) is NothingReason.EMPTY_CORPUS


def test_filters_and_limit_reach_the_index(house: House) -> None:
    add(house.library, house.tenant, document(*["harbour"] * 5, media_type="text/csv"))
    assert len(found(house.ask("harbour", limit=2))) == 2
    starved = house.ask("harbour", filters=SearchFilters(media_types=("text/html",)))
    assert isinstance(starved, Nothing)


def test_a_date_without_a_zone_is_utc(house: House) -> None:
    at = datetime(2026, 3, 15, 12, tzinfo=UTC)
    add(house.library, house.tenant, document("harbour", document_date=at))
    naive = at.replace(tzinfo=None)
    assert isinstance(house.ask("harbour", filters=SearchFilters(date_from=naive, date_to=naive)), Found)
    assert isinstance(house.ask("harbour", filters=SearchFilters(date_from=naive + timedelta(seconds=1))), Nothing)


@pytest.mark.parametrize("query", ["", " \n\x00", "x" * 2_001])
def test_what_is_no_question_is_refused(house: House, query: str) -> None:
    with pytest.raises(Invalid):
        house.ask(query)


def test_another_models_vectors_are_not_compared_with(house: House) -> None:
    add(house.library, house.tenant, document("harbour dues"))
    house.library.use_other_set(house.tenant)
    with pytest.raises(TransientError, match="embedder"):
        house.ask("harbour")
    assert len(found(house.ask("harbour", mode=SearchMode.KEYWORD))) == 1


def test_a_promotion_while_a_query_is_embedded_embeds_it_anew(house: House) -> None:
    add(house.library, house.tenant, document("harbour dues"))
    house.library.shelf.sets[2] = EMBEDDER.model()
    retrievers = house.retrievers

    class PromotedMeanwhile:
        def __init__(self, tenant: uuid.UUID) -> None:
            self._inner: Retriever = retrievers(tenant)
            self.active_set = self._inner.active_set

        def search(self, query: IndexQuery) -> RetrievalOutcome:
            house.library.use_other_set(house.tenant)
            return self._inner.search(query)

    house.retrievers = PromotedMeanwhile
    assert reason(house.ask("volcano")) is NothingReason.NO_MATCH
    assert house.embedder.asked == ["volcano", "volcano"]
