"""What bootstrap.sql makes, seen by the roles it makes."""

from __future__ import annotations

import subprocess

import psycopg2
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.pool import NullPool

from pipeline.entrypoints.embedded import binaries, bootstrap
from pipeline.entrypoints.embedded.services import EmbeddedServices
from tests.conftest import DatabaseUrls


def _rows(url: str, statement: str) -> list[tuple[object, ...]]:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return [tuple(row) for row in connection.execute(text(statement))]


def test_application_roles_are_exempt_from_nothing(database_urls: DatabaseUrls) -> None:
    roles = _rows(
        database_urls.superuser,
        "SELECT rolname, rolcanlogin, rolsuper, rolbypassrls FROM pg_roles WHERE rolname LIKE 'docmill%' ORDER BY 1",
    )
    assert roles == [
        ("docmill_backup", True, False, True),
        ("docmill_gateway", True, False, False),
        ("docmill_migrator", True, False, False),
        ("docmill_owner", False, False, False),
        ("docmill_sweep", True, False, False),
        ("docmill_worker", True, False, False),
    ]
    owned = _rows(database_urls.superuser, "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'")
    assert owned == [("docmill_owner",)]


def test_the_migrator_acts_as_the_owner(database_urls: DatabaseUrls) -> None:
    assert _rows(database_urls.migrator, "SELECT session_user::text, current_user::text") == [
        ("docmill_migrator", "docmill_owner")
    ]


@pytest.mark.parametrize("role", ["gateway", "worker", "sweep"])
def test_application_roles_have_timeouts_and_make_nothing(database_urls: DatabaseUrls, role: str) -> None:
    url = getattr(database_urls, role)
    for setting in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
        assert _rows(url, f"SELECT current_setting('{setting}')") != [("0",)]
    for schema in ("public", "app"):
        assert _rows(url, f"SELECT has_schema_privilege('{schema}', 'CREATE')") == [(False,)]
    assert _rows(url, "SELECT has_database_privilege(current_database(), 'TEMPORARY')") == [(False,)]


def test_the_backup_reads_every_table_and_writes_none(database_urls: DatabaseUrls) -> None:
    rights = _rows(
        database_urls.backup,
        "SELECT bool_and(has_table_privilege(oid, 'SELECT')), "
        "bool_or(has_table_privilege(oid, 'INSERT, UPDATE, DELETE')), count(*) > 10 "
        "FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace",
    )
    assert rights == [(True, False, True)]


def test_the_backup_role_dumps_past_every_policy(services: EmbeddedServices, database_name: str) -> None:
    dumped = subprocess.run(
        [binaries.postgres().home / "bin" / "pg_dump", services.postgres.dsn("docmill_backup", database_name)],
        capture_output=True,
        text=True,
    )
    assert dumped.returncode == 0, dumped.stderr
    assert "COPY public.sources" in dumped.stdout


def test_the_extension_is_there(database_urls: DatabaseUrls) -> None:
    assert _rows(database_urls.worker, "SELECT '[1,0]'::vector <=> '[0,1]'::vector") == [(1.0,)]


def test_it_may_be_repeated(services: EmbeddedServices) -> None:
    bootstrap.bootstrap(services.postgres)
    bootstrap.bootstrap(services.postgres)


def test_a_wrong_password_is_refused(services: EmbeddedServices) -> None:
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(services.postgres.dsn("docmill_worker"), password="wrong")
