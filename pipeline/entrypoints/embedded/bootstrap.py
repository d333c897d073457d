"""Runs ``bootstrap.sql`` without psql: the same file an operator runs, as the superuser, then the passwords."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import resources

import psycopg2
import psycopg2.extensions
from psycopg2 import sql

from pipeline.entrypoints.embedded.postgres import DATABASE, SUPERUSER, Postgres

LOGIN_ROLES = ("docmill_migrator", "docmill_gateway", "docmill_worker", "docmill_sweep", "docmill_backup")
_MIGRATOR = "docmill_migrator"
_EXECUTE_EACH = "\\gexec"
_CONNECT = "\\connect "


def bootstrap(postgres: Postgres) -> None:
    """Make or renew roles, database, extension and passwords. May be repeated; raises ``psycopg2.Error``."""
    script = (resources.files(__package__) / "bootstrap.sql").read_text(encoding="utf-8")
    database = "postgres"
    pending: list[str] = []
    for line in [*script.splitlines(), _CONNECT]:
        if line.rstrip() == _EXECUTE_EACH:
            _run(postgres, database, "\n".join(pending), execute_each=True)
        elif line.startswith(_CONNECT):
            _run(postgres, database, "\n".join(pending), execute_each=False)
            database = line.removeprefix(_CONNECT).strip()
        else:
            pending.append(line)
            continue
        pending = []
    _set_passwords(postgres)


def copy_database(postgres: Postgres, template: str, name: str) -> None:
    """Replace database ``name`` by a copy of ``template``, with the same owner and the same right to connect."""
    with _superuser(postgres, "postgres") as cursor:
        new, roles = sql.Identifier(name), sql.SQL(", ").join(map(sql.Identifier, LOGIN_ROLES))
        cursor.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(new))
        cursor.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {} OWNER docmill_owner").format(new, sql.Identifier(template))
        )
        cursor.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(new))
        cursor.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO {}").format(new, roles))


def _run(postgres: Postgres, database: str, text: str, *, execute_each: bool) -> None:
    with _superuser(postgres, database) as cursor:
        cursor.execute(text)
        if execute_each:
            for row in cursor.fetchall():
                cursor.execute(row[0])


def _set_passwords(postgres: Postgres) -> None:
    """The server gets the verifier, never the password, so that no log of a statement can hold one."""
    with _superuser(postgres, DATABASE) as cursor:
        for role in LOGIN_ROLES:
            verifier = psycopg2.extensions.encrypt_password(
                postgres.password(role), role, scope=cursor.connection, algorithm="scram-sha-256"
            )
            cursor.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier)))


@contextlib.contextmanager
def _superuser(postgres: Postgres, database: str) -> Iterator[psycopg2.extensions.cursor]:
    connection = psycopg2.connect(postgres.dsn(SUPERUSER, database))
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()
