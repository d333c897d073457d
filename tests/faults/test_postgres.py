"""Postgres killed in the middle of an ingest, and a catalogue in which nobody forgot a policy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.pool import NullPool

from pipeline.errors import ConfigurationError, Failure, FailureCode
from storage.content import S3ContentStore
from storage.preflight import UNPROTECTED_TABLES, preflight
from tests.conftest import DatabaseUrls
from tests.deployment import Deployment
from tests.faults import documents
from tests.faults.harness import Supervisor, assert_all_published, supervised
from tests.faults.servers import Servers

DOWN_S = 2.0


@pytest.mark.faults
@pytest.mark.fault(
    "T12",
    "Postgres killed with SIGKILL in the middle of a ten-document ingest, started again 2 s later",
    "no half state, all published, none crashed",
)
def test_postgres_killed_in_the_middle(
    own_servers: Servers, tmp_path: Path, seed: int, observed: dict[str, object]
) -> None:
    services = own_servers.services
    deployment = Deployment(services.settings_environment(), services.database_url("postgres"), tmp_path)
    try:
        with supervised(deployment) as supervisor:
            supervisor.keep(deployment.start_worker)
            supervisor.keep(deployment.start_beat)
            principal = deployment.principal()
            ids = [deployment.upload(principal, it.body, it.filename, it.media_type) for it in documents.ten(seed)]
            deployment.wait_for(lambda: _done(deployment) >= 8, 60)
            done = _done(deployment)
            own_servers.kill("postgres")
            time.sleep(DOWN_S)
            recovery = own_servers.start("postgres")
            up = time.monotonic()
            sources = deployment.wait_ended(principal, ids, 150)
            most = deployment.sql("SELECT max(attempts), max(lost_leases) FROM ingest_stages")
            observed |= {
                "stages done at the kill": done,
                "Postgres back after": f"{recovery:.1f} s",
                "all published after": f"{time.monotonic() - up:.1f} s",
                "most attempts": most[0][0],
                "most lost leases": most[0][1],
                "worker restarts": supervisor.restarts,
            }
            assert_all_published(deployment, principal, sources)
            assert most[0][1] == 0  # an outage is no document's fault
    finally:
        deployment.stop()


@pytest.mark.fault(
    "T12",
    "the original of one of two documents is lost from the store",
    "it fails with a reason instead of holding its place for ever",
)
def test_a_lost_original_is_a_failure(
    deployment: Deployment, supervisor: Supervisor, content_store: S3ContentStore, seed: int
) -> None:
    principal = deployment.principal()
    notes = [documents.short(seed, number) for number in range(2)]
    ids = [deployment.upload(principal, note.body, note.filename, note.media_type) for note in notes]
    ((key,),) = deployment.sql(
        "SELECT v.content_key FROM file_versions v JOIN source_files s USING (tenant_id, file_id)"
        " WHERE s.source_id = :s",
        s=ids[0],
    )
    content_store.delete(str(key))
    supervisor.keep(deployment.start_worker)
    supervisor.keep(deployment.start_beat)
    lost, kept = deployment.wait_ended(principal, ids, 60)
    assert lost.latest.failure == Failure(FailureCode.VALIDATION_FAILED, "The stored original is missing.")
    assert kept.status == "ready"


def _done(deployment: Deployment) -> int:
    return int(str(deployment.sql("SELECT count(*) FROM ingest_stages WHERE status = 'succeeded'")[0][0]))


# --- the catalogue ---

# Tables of the deployment, which hold nothing of a tenant's.
SHARED = {"alembic_version", "embedding_sets"}
POLICY = "CREATE POLICY p ON forgotten USING (tenant_id = app.tenant())"
WHOLE_POLICY = POLICY + " WITH CHECK (tenant_id = app.tenant())"
FORGOTTEN = {
    "no row security": [],
    "not forced": [
        "ALTER TABLE forgotten ENABLE ROW LEVEL SECURITY",
        POLICY + " WITH CHECK (tenant_id = app.tenant())",
    ],
    "no policy": [
        "ALTER TABLE forgotten ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE forgotten FORCE ROW LEVEL SECURITY",
    ],
    "nothing checked on writing": [
        "ALTER TABLE forgotten ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE forgotten FORCE ROW LEVEL SECURITY",
        POLICY,
    ],
}


@pytest.fixture
def superuser(database_urls: DatabaseUrls) -> Iterator[Connection]:
    engine = create_engine(database_urls.superuser, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection


@pytest.mark.parametrize("forgotten", FORGOTTEN)
@pytest.mark.fault("T7", "a new table of tenants without a complete policy", "the catalogue lists it, start refused")
def test_a_table_that_is_not_protected_stops_the_start(
    superuser: Connection, database_urls: DatabaseUrls, forgotten: str
) -> None:
    serving = create_engine(database_urls.gateway, poolclass=NullPool)
    assert superuser.execute(text(UNPROTECTED_TABLES)).scalars().all() == []
    preflight(serving)
    superuser.execute(text("CREATE TABLE forgotten (tenant_id uuid, id int, PRIMARY KEY (tenant_id, id))"))
    try:
        for statement in FORGOTTEN[forgotten]:
            superuser.execute(text(statement))
        assert superuser.execute(text(UNPROTECTED_TABLES)).scalars().all() == ["forgotten"]
        with pytest.raises(ConfigurationError, match="table forgotten lacks a forced row-level policy"):
            preflight(serving)
    finally:
        superuser.execute(text("DROP TABLE forgotten"))


KEYS = """
SELECT c.relname, k.conname, k.contype,
       (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = k.conrelid AND a.attnum = k.conkey[1]) AS first,
       f.relname AS refers_to,
       (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = k.confrelid AND a.attnum = k.confkey[1]) AS refers_first
  FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid LEFT JOIN pg_class f ON f.oid = k.confrelid
 WHERE c.relnamespace = 'public'::regnamespace AND k.contype IN ('p', 'u', 'f')
"""
UNIQUE_INDEXES = """
SELECT c.relname, i.indexrelid::regclass::text AS named,
       (SELECT a.attname FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum = i.indkey[0]) AS first
  FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
 WHERE c.relnamespace = 'public'::regnamespace AND i.indisunique
"""
TABLES = """
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
   AND NOT EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary)
"""


@pytest.mark.fault("T7", "every primary key, unique constraint and foreign key", "begins with tenant_id")
def test_every_key_begins_with_the_tenant(superuser: Connection, observed: dict[str, object]) -> None:
    keys = [row for row in superuser.execute(text(KEYS)).all() if row.relname not in SHARED]
    unique = [row for row in superuser.execute(text(UNIQUE_INDEXES)).all() if row.relname not in SHARED]
    assert superuser.execute(text(TABLES)).scalars().all() == []
    others = {"uq_tenants_slug"}  # what must be found before a tenant is known
    wrong = [
        tuple(key)
        for key in keys
        if key.conname not in others
        and (key.first != "tenant_id" or key.refers_first not in (None, "tenant_id"))
        and key.refers_to not in SHARED
    ]
    wrong += [tuple(index) for index in unique if index.first != "tenant_id" and index.named not in others]
    observed |= {"keys": len(keys), "unique indexes": len(unique)}
    assert wrong == []
    assert len(keys) > 20
