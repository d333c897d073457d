"""Engines per role, the tenant of a transaction, and the translation of driver errors."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from pipeline.errors import TransientError

# SQLSTATE classes and codes that say «later», not «never»: connection trouble, serialisation, deadlock, lock and
# statement timeouts, shutdown, too many connections, disk or memory full.
_TRANSIENT_CLASSES = ("08", "53", "57")
_TRANSIENT_CODES = frozenset({"40001", "40P01", "55P03"})
RETRIED_AT_ONCE = frozenset({"40001", "40P01"})


def build_engine(url: str, *, pool_size: int, application: str, ping: bool = True) -> Engine:
    """An engine that connects lazily; forked children dispose of it before first use.

    ``ping`` tries a pooled connection before each use. A worker does without: what it was doing is put back anyway,
    and the question costs more than many of its statements.
    """
    return create_engine(
        url.replace("postgresql://", "postgresql+psycopg2://", 1),
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=30,
        pool_pre_ping=ping,
        pool_recycle=1800,
        connect_args={
            "application_name": application,
            "connect_timeout": 5,
            "keepalives_idle": 30,
            "keepalives_interval": 10,
            "keepalives_count": 3,
        },
    )


def sqlstate(problem: DBAPIError) -> str | None:
    """The SQLSTATE the server gave, None when the connection itself broke."""
    return getattr(problem.orig, "pgcode", None)


@contextmanager
def translated() -> Iterator[None]:
    """Turn driver trouble that may pass into :class:`TransientError`; leave bugs as they are."""
    try:
        yield
    except PoolTimeout as problem:
        raise TransientError("postgres", "no free connection") from problem
    except DBAPIError as problem:
        code = sqlstate(problem)
        lost = code is None and (
            problem.connection_invalidated or type(problem).__name__ in ("OperationalError", "InterfaceError")
        )
        if lost or (code is not None and (code[:2] in _TRANSIENT_CLASSES or code in _TRANSIENT_CODES)):
            raise TransientError("postgres", code or "connection lost") from problem
        raise


def check(engine: Engine) -> None:
    """Raises ``TransientError('postgres', …)`` when the server does not answer."""
    with translated(), engine.connect() as connection:
        connection.execute(text("SELECT 1"))


@contextmanager
def tenant_transaction(engine: Engine, tenant_id: uuid.UUID) -> Iterator[Connection]:
    """A transaction that sees one tenant's rows; rolled back unless committed inside."""
    with translated(), engine.connect() as connection:
        connection.execute(text("SELECT set_config('app.tenant_id', :tenant, true)"), {"tenant": str(tenant_id)})
        yield connection
