"""One transaction of one tenant, with every repository over the same connection."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, Engine

from pipeline.types import EmbeddingModel
from storage.blobs import PostgresBlobs
from storage.deletions import PostgresDeletions
from storage.documents import PostgresDocuments
from storage.engine import tenant_transaction
from storage.files import PostgresFiles
from storage.idempotency import PostgresRequests
from storage.identity import PostgresSubjects
from storage.knowledge import PostgresKeywords, PostgresKnowledge, PostgresVectors
from storage.ledger import PostgresLedger
from storage.rows import Repository
from storage.sources import PostgresSources


class PostgresUnitOfWork:
    """Adapter of :class:`pipeline.unit_of_work.UnitOfWork`: explicit commit, rollback by default."""

    def __init__(self, connection: Connection, tenant_id: uuid.UUID, lease_s: float) -> None:
        self._connection = connection
        self._tenant = tenant_id
        self.files = PostgresFiles(connection, tenant_id)
        self.sources = PostgresSources(connection, tenant_id)
        self.subjects = PostgresSubjects(connection, tenant_id)
        self.ledger = PostgresLedger(connection, tenant_id, lease_s)
        self.documents = PostgresDocuments(connection, tenant_id)
        self.knowledge = PostgresKnowledge(connection, tenant_id)
        self.vectors = PostgresVectors(connection, tenant_id)
        self.keywords = PostgresKeywords(connection, tenant_id)
        self.blobs = PostgresBlobs(connection, tenant_id)
        self.deletions = PostgresDeletions(connection, tenant_id)
        self.requests = PostgresRequests(connection, tenant_id)

    def embedding_set(self, model: EmbeddingModel) -> int | None:
        row = Repository(self._connection, self._tenant).row(
            "SELECT set_id FROM embedding_sets WHERE provider = :provider AND model = :model AND version = :version"
            " AND dimensions = :dimensions",
            provider=model.provider,
            model=model.model,
            version=model.version,
            dimensions=model.dimensions,
        )
        return int(row["set_id"]) if row else None

    def active_set(self) -> int:
        row = Repository(self._connection, self._tenant).one(
            "SELECT active_set FROM tenants WHERE tenant_id = :tenant FOR SHARE"
        )
        return int(row["active_set"])

    def commit(self) -> None:
        self._connection.commit()


class PostgresUnits:
    """Adapter of :class:`pipeline.unit_of_work.UnitOfWorkFactory` for one role's engine."""

    def __init__(self, engine: Engine, lease_s: float) -> None:
        self._engine = engine
        self._lease_s = lease_s

    @contextmanager
    def __call__(self, tenant_id: uuid.UUID) -> Iterator[PostgresUnitOfWork]:
        with tenant_transaction(self._engine, tenant_id) as connection:
            yield PostgresUnitOfWork(connection, tenant_id, self._lease_s)
