"""Search in Postgres: legs, fusion, floors and content by one statement of :mod:`storage.search_statement`."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine import RowMapping

from pipeline.errors import StaleEmbeddingSet
from pipeline.ports import ActiveSet, IndexQuery
from pipeline.retrieval import outcome
from pipeline.types import (
    ChunkKind,
    EmbeddingModel,
    Found,
    Hit,
    KeywordSignal,
    Location,
    NothingReason,
    PageMethod,
    RetrievalOutcome,
    SearchMode,
    VectorSignal,
)
from storage import search_filters
from storage.engine import tenant_transaction
from storage.search_filters import is_storable
from storage.search_statement import Shape, compose

_LOCATION = TypeAdapter(Location)

_ACTIVE_SET = """
SELECT e.set_id, e.provider, e.model, e.version, e.dimensions, e.token_window, e.absolute_floor
  FROM tenants t JOIN embedding_sets e ON e.set_id = t.active_set
 WHERE t.tenant_id = :tenant
"""

# For this transaction alone. Nested loops: a tenant ingested since the last ANALYZE is estimated at one row, and a
# loop over the permitted set for each of its rows is what follows (measured, 10,000 fresh chunks: 146 ms of vector
# leg instead of 9). Lookups that want a loop are written as LATERAL and keep it. Memory: postings of a common word.
_PLANNER = "SELECT set_config('enable_nestloop', 'off', true), set_config('work_mem', '64MB', true)"


class PostgresRetriever:
    """Adapter of :class:`pipeline.ports.Retriever` for one tenant, in a transaction of its own for each call.

    ``low_confidence_threshold`` is the confidence under which a hit is marked as unsure.
    """

    def __init__(self, engine: Engine, tenant_id: uuid.UUID, *, low_confidence_threshold: float) -> None:
        self._engine = engine
        self._tenant = tenant_id
        self._threshold = low_confidence_threshold

    def active_set(self) -> ActiveSet:
        with tenant_transaction(self._engine, self._tenant) as connection:
            return self._active_set(connection)

    def search(self, query: IndexQuery) -> RetrievalOutcome:
        subjects = [subject for subject in query.subjects if is_storable(subject)]
        if not subjects:
            return outcome.nothing(NothingReason.NO_ACCESS)
        filters = search_filters.conditions(query.filters)
        terms = [term for term in query.terms if is_storable(term)] if query.mode is not SearchMode.VECTOR else []
        vector = _checked(query.vector) if query.mode is not SearchMode.KEYWORD else None
        shape = Shape(
            embedding_set=query.embedding_set if vector is not None else None,
            dimensions=len(vector or ()),
            keywords=bool(terms),
            source_filters=filters.on_source,
            chunk_filters=filters.on_chunk,
        )
        values = {
            **filters.values,
            "tenant": self._tenant,
            "subjects": subjects,
            "limit": max(query.limit, query.candidates),
            "relative_floor": query.relative_floor,
            "terms": terms,
            "vector": _literal(vector or ()),
            "absolute_floor": query.absolute_floor,
        }
        with tenant_transaction(self._engine, self._tenant) as connection:
            if vector is not None:
                _fits(self._active_set(connection), query.embedding_set, vector)
            connection.execute(text(_PLANNER))
            rows = connection.execute(text(compose(shape)), values).mappings().all()
        return self._outcome(query, rows)

    def _active_set(self, connection: Connection) -> ActiveSet:
        row = connection.execute(text(_ACTIVE_SET), {"tenant": self._tenant}).mappings().one()
        return ActiveSet(
            row["set_id"],
            EmbeddingModel(
                provider=row["provider"],
                model=row["model"],
                version=row["version"],
                dimensions=row["dimensions"],
                window=row["token_window"],
                absolute_floor=row["absolute_floor"],
            ),
        )

    def _outcome(self, query: IndexQuery, rows: Sequence[RowMapping]) -> RetrievalOutcome:
        counts = rows[0]
        if not counts["total"]:
            return outcome.nothing(NothingReason.EMPTY_CORPUS)
        if counts["chunk_id"] is None:
            compared = counts["remaining"] and counts["compared"]
            return outcome.nothing(NothingReason.BELOW_FLOOR if compared else NothingReason.NO_MATCH)
        remaining = counts["remaining"]
        return Found(
            hits=tuple(self._hit(row) for row in rows),
            under_filled=remaining < query.limit and remaining < counts["total"],
            interpretation={},
            timings_ms={},
        )

    def _hit(self, row: RowMapping) -> Hit:
        confidence: float | None = row["confidence"]
        return Hit(
            chunk_id=row["chunk_id"],
            source_id=row["source_id"],
            source_version=row["published_version"],
            file_id=row["file_id"],
            title=row["title"],
            kind=ChunkKind(row["kind"]),
            content=row["content"],
            content_hash=row["content_hash"],
            heading_path=tuple(row["heading_path"]),
            location=_LOCATION.validate_python(row["location"]),
            score=row["relative"],
            vector=VectorSignal(row["vector_rank"], row["similarity"]) if row["vector_rank"] else None,
            keyword=KeywordSignal(row["keyword_rank"], row["keyword_score"]) if row["keyword_rank"] else None,
            method=PageMethod(row["method"]),
            confidence=confidence,
            low_confidence=confidence is not None and confidence < self._threshold,
            excerpt=outcome.excerpt(row["content"]),
        )


def _checked(vector: Sequence[float] | None) -> Sequence[float]:
    """A query's vector. Raises ValueError when there is none or nothing is near it."""
    norm = math.fsum(value * value for value in vector or ())
    if vector is None or not math.isfinite(norm) or norm == 0.0:
        raise ValueError("a vector search needs a vector without a NaN and with a norm above zero")
    return vector


def _fits(active: ActiveSet, embedding_set: int, vector: Sequence[float]) -> None:
    if active.set_id != embedding_set:
        raise StaleEmbeddingSet(f"set {active.set_id} is active, the query was embedded for set {embedding_set}")
    if len(vector) != active.model.dimensions:
        raise ValueError("a vector of another size than its set's is refused")


def _literal(vector: Sequence[float]) -> Any:
    return "[" + ",".join(f"{value:.7g}" for value in vector) + "]"
