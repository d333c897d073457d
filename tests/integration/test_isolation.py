"""One tenant against every table and view of another, in SQL, as the application's own roles."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import ProgrammingError
from sqlalchemy.pool import NullPool

from pipeline.entrypoints.embedded.services import EmbeddedServices
from storage.engine import sqlstate, tenant_transaction
from tests.contract.libraries import PostgresLibrary, add, document

# What belongs to the deployment and tells nothing of a tenant.
SHARED = {"alembic_version", "embedding_sets"}
INSUFFICIENT_PRIVILEGE = "42501"

RELATIONS = """
SELECT c.relname, EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id') AS of_tenants
  FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm') ORDER BY 1
"""

# One row in every table that searching and its library do not fill.
ROWS = """
INSERT INTO memberships (tenant_id, member, subject) VALUES (:tenant, 'alice', 'team:red');
INSERT INTO idempotency_keys (tenant_id, principal, route, key, body_hash)
    VALUES (:tenant, 'alice', '/v1/files', 'k', 'h');
INSERT INTO deletion_receipts (tenant_id, receipt_id, source_ids, file_ids, auth_subjects)
    VALUES (:tenant, :id, '{}', '{}', '{}');
INSERT INTO files (tenant_id, file_id, auth_subject, filename, state, version)
    VALUES (:tenant, :id, 'team:red', 'a.txt', 'stored', 1);
INSERT INTO file_versions (tenant_id, file_id, version, content_key, byte_size, declared_type, media_type)
    VALUES (:tenant, :id, 1, 'key', 1, 'text/plain', 'text/plain');
INSERT INTO source_files (tenant_id, source_id, file_id) VALUES (:tenant, :source, :id);
INSERT INTO ingest_stages (tenant_id, source_id, generation, stage, status)
    VALUES (:tenant, :source, 1, 'chunk', 'succeeded');
INSERT INTO ingest_units (tenant_id, source_id, generation, stage, unit, first_item, last_item, status)
    VALUES (:tenant, :source, 1, 'chunk', 0, 1, 1, 'succeeded');
INSERT INTO blobs (tenant_id, digest, body, byte_size) VALUES (:tenant, 'd', '', 0);
INSERT INTO blob_refs (tenant_id, owner, digest) VALUES (:tenant, 'o', 'd');
INSERT INTO blocks (tenant_id, source_id, generation, block, body) VALUES (:tenant, :source, 1, 0, '{}');
INSERT INTO pages (tenant_id, source_id, generation, page, width, height, rotation, method, garble)
    VALUES (:tenant, :source, 1, 1, 1, 1, 0, 'native', 0);
"""


@dataclass(frozen=True)
class Town:
    """Two tenants with a row in every table."""

    mine: uuid.UUID
    theirs: uuid.UUID
    gateway: Engine
    worker: Engine
    superuser: Engine

    def engine(self, role: str) -> Engine:
        return self.gateway if role == "gateway" else self.worker


@pytest.fixture(scope="module")
def town(services: EmbeddedServices) -> Iterator[Town]:
    library = PostgresLibrary(services)
    town = Town(
        mine=library.tenant(),
        theirs=library.tenant(),
        gateway=library.gateway,
        worker=library.worker,
        superuser=create_engine(library.superuser_url, poolclass=NullPool),
    )
    for tenant in (town.mine, town.theirs):
        ref = add(library, tenant, document("harbour dues"))
        values = {"tenant": tenant, "source": ref.source_id, "id": uuid.uuid4()}
        with tenant_transaction(town.worker, tenant) as connection:
            for statement in ROWS.split(";\n")[:-1]:
                connection.execute(text(statement), values)
            connection.commit()
    yield town
    library.close()


def relations(town: Town) -> tuple[list[str], list[str]]:
    """Names of every relation with and without a tenant."""
    with town.superuser.connect() as connection:
        rows = connection.execute(text(RELATIONS)).all()
    return [name for name, of_tenants in rows if of_tenants], [name for name, of_tenants in rows if not of_tenants]


def count(connection: Connection, relation: str, condition: str = "true", **values: object) -> int | None:
    """Rows the role sees, None when it may not read the relation at all."""
    try:
        with connection.begin_nested():
            return int(
                connection.execute(text(f'SELECT count(*) FROM "{relation}" WHERE {condition}'), values).scalar_one()
            )
    except ProgrammingError as refused:
        if sqlstate(refused) != INSUFFICIENT_PRIVILEGE:
            raise
        return None


def test_every_table_of_tenants_has_a_row_to_be_hidden(town: Town) -> None:
    """The tests below would pass on an empty table: a new table needs its row in ROWS."""
    with_tenant, without = relations(town)
    assert set(without) == SHARED
    with town.superuser.connect() as connection:
        sets = connection.execute(
            text("SELECT 'chunk_embeddings_' || active_set FROM tenants WHERE tenant_id = :t"), {"t": town.theirs}
        ).scalar_one()
        for relation in with_tenant:
            if relation.startswith("chunk_embeddings_") and relation != sets:
                continue
            for tenant in (town.mine, town.theirs):
                assert count(connection, relation, "tenant_id = :t", t=tenant), relation


@pytest.mark.parametrize("role", ["gateway", "worker"])
def test_a_tenant_sees_no_row_of_another(town: Town, role: str) -> None:
    with_tenant, _ = relations(town)
    seen = 0
    with tenant_transaction(town.engine(role), town.mine) as connection:
        for relation in with_tenant:
            assert not count(connection, relation, "tenant_id <> :t", t=town.mine), relation
            assert not count(connection, relation, "tenant_id = :t", t=town.theirs), relation
            seen += bool(count(connection, relation))
    assert seen > 10


@pytest.mark.parametrize("role", ["gateway", "worker"])
@pytest.mark.parametrize("setting", [None, "", str(uuid.UUID(int=0))])
def test_without_a_tenant_there_is_no_row(town: Town, role: str, setting: str | None) -> None:
    with_tenant, _ = relations(town)
    with town.engine(role).connect() as connection:
        if setting is not None:
            connection.execute(text("SELECT set_config('app.tenant_id', :t, true)"), {"t": setting})
        for relation in with_tenant:
            assert not count(connection, relation), relation


@pytest.mark.parametrize("role", ["gateway", "worker"])
def test_the_tenant_of_a_transaction_does_not_outlive_it(town: Town, role: str) -> None:
    with tenant_transaction(town.engine(role), town.theirs) as connection:
        assert count(connection, "sources") == 1
    with town.engine(role).connect() as connection:
        assert count(connection, "sources") == 0


def test_a_tenant_changes_no_row_of_another(town: Town) -> None:
    with tenant_transaction(town.worker, town.mine) as connection:
        for statement in (
            "UPDATE sources SET title = 'taken' WHERE tenant_id = :theirs",
            "DELETE FROM chunks WHERE tenant_id = :theirs",
            "DELETE FROM memberships WHERE tenant_id = :theirs",
        ):
            assert connection.execute(text(statement), {"theirs": town.theirs}).rowcount == 0
        for statement in (
            "INSERT INTO memberships (tenant_id, member, subject) VALUES (:theirs, 'mallory', 'team:red')",
            "UPDATE sources SET tenant_id = :theirs",
        ):
            with pytest.raises(ProgrammingError, match="row-level security"), connection.begin_nested():
                connection.execute(text(statement), {"theirs": town.theirs})
