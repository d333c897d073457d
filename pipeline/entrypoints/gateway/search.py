"""``/v1/search``: cited hits, or why there are none."""

from __future__ import annotations

import math
import uuid
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue

from pipeline.entrypoints.gateway import calls, problems, shapes
from pipeline.entrypoints.gateway.calls import Caller, Counters, IdempotencyKey, Services
from pipeline.retrieval.interpret import MAX_QUERY_CHARS
from pipeline.services.search import DEFAULT_LIMIT, MAX_LIMIT, SearchRequest
from pipeline.types import Found, SearchFilters, SearchMode

router = APIRouter(route_class=calls.TenantRoute, tags=["search"], dependencies=[calls.BEARER])

_SEARCH = "POST /v1/search"
_MOST_VALUES = 100


def _storable(value: JsonValue) -> JsonValue:
    """Refuses what no stored JSON value can be: NaN, infinities, NUL and lone surrogates, at any depth."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("numbers are finite")
    if isinstance(value, str):
        _storable_text(value)
    elif isinstance(value, list):
        for each in value:
            _storable(each)
    elif isinstance(value, dict):
        for name, each in value.items():
            _storable_text(name)
            _storable(each)
    return value


def _storable_text(text: str) -> None:
    if "\x00" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError("text has neither NUL nor lone surrogates")


class FiltersShape(BaseModel):
    """Metadata filters; what is left out does not filter. Both dates are included."""

    model_config = ConfigDict(extra="forbid", title="Filters")

    source_id: list[uuid.UUID] = Field(default=[], max_length=_MOST_VALUES)
    media_type: list[Annotated[str, Field(max_length=200)]] = Field(default=[], max_length=_MOST_VALUES)
    date_from: datetime | None = None
    date_to: datetime | None = None
    page: int | None = Field(default=None, ge=1, le=calls.MOST_ORDINAL)
    language: str | None = Field(default=None, max_length=35)
    metadata: Annotated[dict[str, JsonValue], AfterValidator(_storable)] = Field(default={}, max_length=_MOST_VALUES)


class QuestionShape(BaseModel):
    """A question. ``limit`` is how many hits are wanted at most, ``budget_tokens`` what they may take in all."""

    model_config = ConfigDict(extra="forbid", title="Question")

    query: str = Field(min_length=1, max_length=MAX_QUERY_CHARS)
    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=MAX_LIMIT)
    mode: SearchMode = SearchMode.HYBRID
    filters: FiltersShape = FiltersShape()
    budget_tokens: int | None = Field(default=None, ge=1, le=1_000_000)


@router.post(
    "/v1/search",
    response_model=shapes.FoundShape | shapes.NothingShape,
    responses=problems.documented("unauthenticated", "too_large", "unsupported_type", "invalid", "unavailable"),
)
def search(
    question: QuestionShape, caller: Caller, services: Services, counters: Counters, key: IdempotencyKey = None
) -> Any:
    """Search the published chunks the caller may see.

    A repeated ``Idempotency-Key`` is answered anew: a search changes nothing, and its hits are never kept.
    """
    services.idempotency.check(caller, _SEARCH, key, calls.fingerprint(question))
    outcome = services.search.search(caller, _request(question))
    told = "found" if isinstance(outcome, Found) else str(outcome.reason)
    counters.searches.labels(question.mode, told).inc()
    return shapes.outcome_shape(outcome)


def _request(question: QuestionShape) -> SearchRequest:
    filters = question.filters
    return SearchRequest(
        query=question.query,
        mode=question.mode,
        limit=question.limit,
        budget_tokens=question.budget_tokens,
        filters=SearchFilters(
            source_ids=tuple(filters.source_id),
            media_types=tuple(filters.media_type),
            date_from=filters.date_from,
            date_to=filters.date_to,
            page=filters.page,
            language=filters.language,
            metadata=filters.metadata,
        ),
    )
