"""How Postgres searches a tenant its statistics know nothing of: by keys, never by reading the tenant whole."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import NullPool, create_engine, event, text

from pipeline.entrypoints.embedded.services import EmbeddedServices
from pipeline.types import SearchFilters, SearchMode
from storage.engine import tenant_transaction
from tests.contract.libraries import PostgresLibrary, add, document
from tests.contract.questions import ask, found

WORDS = [f"harbour word{number} and word{number % 7}" for number in range(40)]


@pytest.fixture(scope="module")
def library(services: EmbeddedServices) -> Iterator[PostgresLibrary]:
    """With statistics of an older tenant, as after its ANALYZE."""
    made = PostgresLibrary(services)
    older = made.tenant()
    for _ in range(20):
        add(made, older, document(*WORDS))
    superuser = create_engine(made.superuser_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with superuser.connect() as connection:
        connection.execute(text("VACUUM ANALYZE"))
    yield made
    made.close()


def plan(
    library: PostgresLibrary, tenant: uuid.UUID, mode: SearchMode, filters: SearchFilters
) -> Iterator[dict[str, Any]]:
    """Every node of the plan of the last statement of a search, under the settings the search made."""
    sent: list[tuple[str, Any]] = []

    def note(_: object, __: object, statement: str, values: Any, *___: object) -> None:
        sent.append((statement, values))

    event.listen(library.gateway, "before_cursor_execute", note)
    try:
        assert found(ask(library, tenant, "harbour word3", mode=mode, filters=filters))
    finally:
        event.remove(library.gateway, "before_cursor_execute", note)
    with tenant_transaction(library.gateway, tenant) as connection:
        # These tables are too small for an index to pay; which one would be taken is the question.
        connection.execute(text("SELECT set_config('enable_seqscan', 'off', true)"))
        for statement, values in sent[:-1]:
            connection.exec_driver_sql(statement, values)
        explained = connection.exec_driver_sql("EXPLAIN (FORMAT JSON) " + sent[-1][0], sent[-1][1]).scalar_one()
    (top,) = explained if isinstance(explained, list) else json.loads(explained)
    return nodes(top["Plan"])


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("filters", [SearchFilters(), SearchFilters(language="en")], ids=["plain", "filtered"])
@pytest.mark.parametrize("mode", SearchMode)
def test_a_new_tenant_is_searched_by_keys(library: PostgresLibrary, mode: SearchMode, filters: SearchFilters) -> None:
    tenant = library.tenant()
    add(library, tenant, document(*WORDS, language="en"))
    every = [*plan(library, tenant, mode=mode, filters=filters)]
    scans = [node for node in every if node.get("Relation Name", "").startswith("chunk")]
    vectors = f"chunk_embeddings_{library.active_set()}"
    keys = {"chunks": "pk_chunks", "chunk_terms": "pk_chunk_terms", vectors: f"{vectors}_pkey"}
    assert {node["Relation Name"] for node in scans} == {
        "chunks",
        *(["chunk_terms"] if mode is not SearchMode.VECTOR else []),
        *([vectors] if mode is not SearchMode.KEYWORD else []),
    }
    for node in scans:
        assert node.get("Index Name") == keys[node["Relation Name"]], node
        assert all(part in node["Index Cond"] for part in CONDITIONS[node["Relation Name"].rstrip("_0123456789")]), node
    inner = [child for node in every if node["Node Type"] == "Nested Loop" for child in node["Plans"]]
    looped = [child.get("CTE Name") for child in inner if child["Parent Relationship"] == "Inner"]
    assert "permitted" not in looped


CONDITIONS = {
    "chunks": ("tenant_id", "source_id", "generation"),
    "chunk_terms": ("tenant_id", "term", "subject_no"),
    "chunk_embeddings": ("tenant_id", "set_id", "source_no"),
}
