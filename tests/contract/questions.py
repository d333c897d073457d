"""Asking a library, and reading what it answers."""

from __future__ import annotations

import dataclasses
import uuid

from pipeline.ports import IndexQuery
from pipeline.retrieval.interpret import interpret
from pipeline.types import Found, Hit, Nothing, NothingReason, RetrievalOutcome, SearchFilters, SearchMode
from tests.contract.libraries import EMBEDDER, Library

RED = ("team:red",)
BOTH = ("team:blue", "team:red")
EVERYTHING = 0.0
KEYWORD, VECTOR, HYBRID = SearchMode.KEYWORD, SearchMode.VECTOR, SearchMode.HYBRID


def question(library: Library, query: str, subjects: tuple[str, ...] = RED, **details: object) -> IndexQuery:
    asked = interpret(query)
    plain = IndexQuery(
        subjects=subjects,
        mode=HYBRID,
        text=asked.text,
        terms=asked.terms,
        vector=EMBEDDER.embed([asked.text])[0],
        embedding_set=library.active_set(),
        absolute_floor=0.55,
        relative_floor=0.4,
        limit=10,
        filters=SearchFilters(),
    )
    return dataclasses.replace(plain, **details)  # type: ignore[arg-type]  # the details are IndexQuery's own fields


def ask(
    library: Library, tenant: uuid.UUID, query: str, subjects: tuple[str, ...] = RED, **details: object
) -> RetrievalOutcome:
    return library.retriever(tenant).search(question(library, query, subjects, **details))


def found(outcome: RetrievalOutcome) -> tuple[Hit, ...]:
    assert isinstance(outcome, Found), outcome
    return outcome.hits


def contents(outcome: RetrievalOutcome) -> list[str]:
    return [hit.content for hit in found(outcome)]


def reason(outcome: RetrievalOutcome) -> NothingReason:
    assert isinstance(outcome, Nothing), outcome
    assert outcome.message
    return outcome.reason
