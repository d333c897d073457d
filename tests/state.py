"""Builds ledger state for tests through the production repositories."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from sqlalchemy import Engine, text

from pipeline import flow
from pipeline.flow import Stage
from pipeline.ledger import Candidate, Won
from pipeline.ports import NewFile
from pipeline.types import EmbeddingModel, GenerationRef, Priority
from pipeline.unit_of_work import NewSource
from storage.engine import build_engine
from storage.identity import create_tenant, ensure_embedding_set
from storage.sweep import PostgresSweepFinder
from storage.unit_of_work import PostgresUnits
from tests.conftest import DatabaseUrls

MODEL = EmbeddingModel("test", "hashed-words", "1", 8, 256, 0.55)


@dataclass(frozen=True)
class State:
    """One deployment's database as its roles see it, and a tenant of its own."""

    urls: DatabaseUrls
    worker: Engine
    superuser: Engine
    units: PostgresUnits
    finder: PostgresSweepFinder
    tenant_id: uuid.UUID
    embedding_set: int

    def another_tenant(self) -> uuid.UUID:
        return _tenant(self.urls)

    def source(
        self,
        content: bytes = b"",
        *,
        tenant_id: uuid.UUID | None = None,
        user: str = "ana",
        priority: Priority = Priority.INTERACTIVE,
        indexed: bool = True,
    ) -> GenerationRef:
        """A stored file with a registered source, waiting for admission."""
        tenant = tenant_id or self.tenant_id
        sha = uuid.uuid5(uuid.NAMESPACE_OID, repr(content or uuid.uuid4())).hex * 2
        file_id = uuid.uuid4()
        with self.units(tenant) as uow:
            uow.subjects.ensure_own(user)
            uow.files.add_pending(
                NewFile(
                    file_id, "a.txt", "text/plain", 1, f"user:{user}", f"{tenant}/files/{file_id}", priority=priority
                )
            )
            uow.files.mark_stored(file_id, sha256=sha, byte_size=1, media_type="text/plain")
            file = uow.files.get(file_id, (f"user:{user}",))
            registered = uow.sources.register(NewSource(file, "a.txt", indexed, priority))
            uow.commit()
        return GenerationRef(tenant, registered.source_id, 1)

    def admitted(self, **options: object) -> GenerationRef:
        ref = self.source(**options)  # type: ignore[arg-type]
        with self.units(ref.tenant_id) as uow:
            assert uow.ledger.admit(Candidate(ref, Priority.INTERACTIVE)) is not None
            uow.commit()
        return ref

    def claimed(self, ref: GenerationRef, stage: Stage, unit: int | None = None, *, alone: bool = False) -> Won:
        with self.units(ref.tenant_id) as uow:
            claim = uow.ledger.claim(ref, stage, unit, alone=alone)
            uow.commit()
        assert isinstance(claim, Won), claim
        return claim

    def advance_to(self, ref: GenerationRef, stage: Stage) -> None:
        """Every stage before ``stage`` succeeds, with nothing written."""
        while (current := self._open_stage(ref)) != stage:
            won = self.claimed(ref, current)
            with self.units(ref.tenant_id) as uow:
                uow.ledger.finish(ref, current, won.token)
                uow.commit()

    def _open_stage(self, ref: GenerationRef) -> Stage:
        done = self.stages(ref)
        return next(spec.stage for spec in flow.FLOW if done.get(spec.stage) != "succeeded")

    def stages(self, ref: GenerationRef) -> dict[Stage, str]:
        rows = self.sql(
            "SELECT stage, status FROM ingest_stages WHERE source_id = :source AND generation = :generation",
            source=ref.source_id,
            generation=ref.generation,
        )
        return {Stage(str(stage)): str(status) for stage, status in rows}

    def expire(self, ref: GenerationRef) -> None:
        """Let every lease of a generation run out."""
        for table in ("ingest_stages", "ingest_units"):
            self.sql(
                f"UPDATE {table} SET lease_until = clock_timestamp() - interval '1 second'"
                " WHERE source_id = :source AND status = 'running'",
                source=ref.source_id,
            )

    def sql(self, statement: str, **values: object) -> list[tuple[object, ...]]:
        """As superuser, past every policy: for looking and for setting the scene."""
        with self.superuser.begin() as connection:
            result = connection.execute(text(statement), values)
            return [tuple(row) for row in result.all()] if result.returns_rows else []


def _tenant(urls: DatabaseUrls) -> uuid.UUID:
    migrator = build_engine(urls.migrator, pool_size=1, application="tests")
    try:
        return create_tenant(migrator, f"tenant-{uuid.uuid4()}")
    finally:
        migrator.dispose()


def open_state(urls: DatabaseUrls, *, pool_size: int = 4) -> State:
    migrator = build_engine(urls.migrator, pool_size=1, application="tests")
    embedding_set = ensure_embedding_set(migrator, MODEL)
    migrator.dispose()
    worker = build_engine(urls.worker, pool_size=pool_size, application="tests-worker")
    sweep = build_engine(urls.sweep, pool_size=2, application="tests-sweep")
    return State(
        urls=urls,
        worker=worker,
        superuser=build_engine(urls.superuser, pool_size=1, application="tests-superuser"),
        units=PostgresUnits(worker, 20.0),
        finder=PostgresSweepFinder(sweep),
        tenant_id=_tenant(urls),
        embedding_set=embedding_set,
    )
