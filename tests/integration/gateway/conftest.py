"""A gateway over the session's services, and documents that are published without workers."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jwt
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from pipeline import bootstrap
from pipeline.engines.embedding.factory import build_embedder
from pipeline.entrypoints.embedded.services import EmbeddedServices
from pipeline.entrypoints.gateway.app import create_app
from pipeline.flow import Stage
from pipeline.ledger import Candidate, Won
from pipeline.ports import NewFile
from pipeline.settings import Settings, load
from pipeline.stages.keywords import terms_of
from pipeline.types import (
    Block,
    BlockKind,
    Box,
    Chunk,
    ChunkKind,
    ExtractedDocument,
    GenerationRef,
    Location,
    Page,
    Priority,
)
from pipeline.unit_of_work import NewSource, PublishedFacts
from storage.engine import build_engine
from storage.identity import create_tenant
from storage.unit_of_work import PostgresUnits
from tests.services_host import MIGRATED

MAX_BYTES = 200_000


@dataclass
class Gateway:
    """One gateway, its application, and what a test needs to set the scene."""

    app: FastAPI
    settings: Settings
    units: PostgresUnits
    client: TestClient
    embed: Any
    _migrator: Any = field(repr=False, default=None)

    def tenant(self) -> uuid.UUID:
        return create_tenant(self._migrator, f"tenant-{uuid.uuid4()}")

    def token(self, tenant_id: uuid.UUID, user: str = "ana", *, secret: str | None = None, **claims: Any) -> str:
        assert self.settings.jwt_secret is not None
        body = {"tenant": str(tenant_id), "sub": user, "exp": int(time.time()) + 600, **claims}
        body = {name: value for name, value in body.items() if value is not None}
        return jwt.encode(body, secret or self.settings.jwt_secret.get_secret_value(), algorithm="HS256")

    def caller(self, tenant_id: uuid.UUID | None = None, user: str = "ana", **claims: Any) -> Caller:
        tenant_id = tenant_id or self.tenant()
        return Caller(self, tenant_id, user, {"Authorization": f"Bearer {self.token(tenant_id, user, **claims)}"})

    def join(self, tenant_id: uuid.UUID, subject: str, user: str) -> None:
        with self.units(tenant_id) as uow:
            uow.subjects.add_member(subject, user)
            uow.commit()

    def publish(self, tenant_id: uuid.UUID, subject: str, texts: Sequence[str], title: str = "report.pdf") -> uuid.UUID:
        """A ready source of one paragraph and one chunk a text, each on a page of its own."""
        file_id = uuid.uuid4()
        with self.units(tenant_id) as uow:
            user = subject.removeprefix("user:")
            uow.subjects.ensure_own(user) if subject.startswith("user:") else uow.subjects.add_member(subject, user)
            uow.files.add_pending(
                NewFile(file_id, title, "application/pdf", 1, subject, f"{tenant_id}/files/{file_id}")
            )
            uow.files.mark_stored(file_id, sha256=uuid.uuid4().hex * 2, byte_size=1, media_type="application/pdf")
            file = uow.files.get(file_id, (subject,))
            source_id = uow.sources.register(NewSource(file, title, True, Priority.INTERACTIVE)).source_id
            uow.commit()
        ref = GenerationRef(tenant_id, source_id, 1)
        with self.units(tenant_id) as uow:
            assert uow.ledger.admit(Candidate(ref, Priority.INTERACTIVE)) is not None
            uow.commit()
        for stage in Stage:
            self._succeed(ref, stage, texts)
        return source_id

    def _succeed(self, ref: GenerationRef, stage: Stage, texts: Sequence[str]) -> None:
        with self.units(ref.tenant_id) as uow:
            won = uow.ledger.claim(ref, stage, None, alone=False)
            assert isinstance(won, Won)
            if stage is Stage.EXTRACT:
                uow.documents.replace(ref, _document(texts))
                uow.sources.describe(
                    ref, title="", warnings=["one page was faint"], pages=len(texts), blocks=len(texts)
                )
            elif stage is Stage.CHUNK:
                uow.knowledge.replace_chunks(ref, [_chunk(number, text) for number, text in enumerate(texts)])
            elif stage is Stage.EMBED:
                uow.vectors.put(ref, uow.active_set(), dict(enumerate(self.embed(list(texts)))))
            elif stage is Stage.KEYWORDS:
                uow.keywords.put(ref, {number: terms_of(text) for number, text in enumerate(texts)})
            elif stage is Stage.PUBLISH:
                total = sum(term.count for text in texts for term in terms_of(text))
                assert uow.sources.publish(ref, PublishedFacts(len(texts), total, len(texts), None, False))
            uow.ledger.finish(ref, stage, won.token)
            uow.commit()


@dataclass
class Caller:
    """One user of one tenant, with a token."""

    gateway: Gateway
    tenant_id: uuid.UUID
    user: str
    headers: dict[str, str]

    def get(self, path: str, **options: Any) -> Any:
        return self.request("GET", path, **options)

    def post(self, path: str, **options: Any) -> Any:
        return self.request("POST", path, **options)

    def delete(self, path: str, **options: Any) -> Any:
        return self.request("DELETE", path, **options)

    def request(self, method: str, path: str, *, headers: dict[str, str] | None = None, **options: Any) -> Any:
        return self.gateway.client.request(method, path, headers={**self.headers, **(headers or {})}, **options)

    def upload(
        self,
        content: bytes = b"A note about turnips.",
        filename: str = "note.txt",
        media_type: str = "text/plain",
        headers: dict[str, str] | None = None,
        **fields: str,
    ) -> Any:
        return self.post("/v1/files", files={"file": (filename, content, media_type)}, data=fields, headers=headers)


@pytest.fixture(scope="session")
def gateway_environment(services: EmbeddedServices, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Settings of a gateway over a migrated database of its own, where the local model's set is the active one."""
    database = f"gateway_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    services.copy_database(MIGRATED, database)
    return {
        **services.settings_environment(database),
        "DOCMILL_BROKER_KEY_PREFIX": f"gateway-{uuid.uuid4().hex[:8]}:",
        "DOCMILL_WORK_DIR": str(tmp_path_factory.mktemp("work")),
        "DOCMILL_MAX_BYTES": str(MAX_BYTES),
    }


def settings_of(environment: dict[str, str], **changed: Any) -> Settings:
    values = {name.removeprefix("DOCMILL_").lower(): value for name, value in environment.items()}
    return load(**{**values, **changed})


@pytest.fixture(scope="session")
def gateway(gateway_environment: dict[str, str]) -> Iterator[Gateway]:
    # The producer's base settings are read where it is imported.
    os.environ.setdefault("DOCMILL_BROKER_URL", gateway_environment["DOCMILL_BROKER_URL"])
    settings = settings_of(gateway_environment)
    bootstrap.migrate(settings)
    worker = bootstrap.engine(settings, "worker", pool_size=2)
    migrator = build_engine(gateway_environment["DOCMILL_DATABASE_URL_MIGRATOR"], pool_size=1, application="tests")
    app = create_app(bootstrap.gateway_services(settings), settings)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield Gateway(app, settings, PostgresUnits(worker, 20.0), client, build_embedder(settings).embed, migrator)
    worker.dispose()
    migrator.dispose()


@pytest.fixture
def ana(gateway: Gateway) -> Caller:
    """A user of a tenant of its own."""
    return gateway.caller()


@pytest.fixture
def work_dir(gateway: Gateway) -> Path:
    assert gateway.settings.work_dir is not None
    return gateway.settings.work_dir


def _document(texts: Sequence[str]) -> ExtractedDocument:
    return ExtractedDocument(
        blocks=tuple(
            Block(BlockKind.PARAGRAPH, text, page=number, boxes=(Box(number, 0.1, 0.1, 0.9, 0.2),))
            for number, text in enumerate(texts, 1)
        ),
        pages=tuple(Page(number, 595.0, 842.0) for number in range(1, len(texts) + 1)),
    )


def _chunk(number: int, text: str) -> Chunk:
    return Chunk(
        ordinal=number,
        kind=ChunkKind.TEXT,
        content=text,
        heading_path=(),
        location=Location(pages=(number + 1,), boxes=(Box(number + 1, 0.1, 0.1, 0.9, 0.2),)),
        first_block=number,
        last_block=number,
        token_count=len(text.split()),
        content_hash=uuid.uuid5(uuid.NAMESPACE_OID, text).hex * 2,
    )
