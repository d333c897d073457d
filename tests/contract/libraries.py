"""A small library of documents in each adapter of the index, written the way ingestion writes it."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence, Set
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeAlias

from sqlalchemy import text

from pipeline.entrypoints.embedded.services import EmbeddedServices
from pipeline.ports import KeywordIndex, KnowledgeStore, Retriever, VectorIndex
from pipeline.stages.keywords import terms_of
from pipeline.testing.embedding import HashedWords
from pipeline.testing.knowledge import MemoryKeywords, MemoryKnowledge, MemoryShelf, MemorySource, MemoryVectors
from pipeline.testing.retriever import MemoryRetriever
from pipeline.types import Chunk, ChunkKind, GenerationRef, Json, Location, index_text
from storage.engine import build_engine, tenant_transaction
from storage.identity import create_tenant, ensure_embedding_set
from storage.knowledge import PostgresKeywords, PostgresKnowledge, PostgresVectors
from storage.retriever import PostgresRetriever
from tests.services_host import MIGRATED

EMBEDDER = HashedWords(256, version="retrieval-contract")
OTHER_EMBEDDER = HashedWords(64, version="retrieval-contract-other")
LOW_CONFIDENCE = 0.7


@dataclass(frozen=True)
class Passage:
    """One chunk to be: its text, and where and how sure it is."""

    text: str
    heading_path: tuple[str, ...] = ()
    pages: tuple[int, ...] = ()
    confidence: float | None = None
    metadata: dict[str, Json] = field(default_factory=dict)

    def chunk(self, ordinal: int) -> Chunk:
        indexed = index_text(self.heading_path, self.text)
        return Chunk(
            ordinal=ordinal,
            kind=ChunkKind.TEXT,
            content=self.text,
            heading_path=self.heading_path,
            location=Location(pages=self.pages),
            first_block=ordinal,
            last_block=ordinal,
            token_count=len(indexed.split()),
            content_hash=hashlib.sha256(indexed.encode()).hexdigest(),
            confidence=self.confidence,
            metadata=self.metadata,
        )


@dataclass(frozen=True)
class Document:
    """One source to be."""

    passages: tuple[Passage, ...]
    subject: str = "team:red"
    title: str = "Untitled"
    media_type: str = "text/plain"
    indexed: bool = True
    language: str | None = None
    document_date: datetime | None = None
    attributes: dict[str, Json] = field(default_factory=dict)


def document(*passages: str | Passage, **details: Any) -> Document:
    return Document(tuple(Passage(one) if isinstance(one, str) else one for one in passages), **details)


Stores: TypeAlias = tuple[KnowledgeStore, VectorIndex, KeywordIndex]


class Library(Protocol):
    """One deployment with its index. Every write is committed."""

    def tenant(self) -> uuid.UUID:
        """A new tenant; its active set is that of ``EMBEDDER``."""

    def active_set(self) -> int:
        """The set of ``EMBEDDER``."""

    def use_other_set(self, tenant: uuid.UUID) -> None:
        """Make the set of ``OTHER_EMBEDDER`` the tenant's active one."""

    def source(self, tenant: uuid.UUID, made_of: Document, source_id: uuid.UUID) -> None:
        """A source nothing is stored of."""

    def stores(self, ref: GenerationRef) -> AbstractContextManager[Stores]:
        """The adapters that write a generation; committed at the end."""

    def publish(self, ref: GenerationRef, chunk_count: int, term_total: int) -> None:
        """Make the generation the visible one."""

    def remove(self, ref: GenerationRef) -> None:
        """Put the tombstone on the source."""

    def move(self, ref: GenerationRef, subject: str) -> None:
        """Change the authority and nothing else."""

    def move_copies(self, ref: GenerationRef, kinds: Set[str]) -> None:
        """Let the copies on a source's rows follow: those of its ``chunks``, ``terms`` and ``vectors``."""

    def retriever(self, tenant: uuid.UUID) -> Retriever: ...


def add(library: Library, tenant: uuid.UUID, made_of: Document, source_id: uuid.UUID | None = None) -> GenerationRef:
    """A published source."""
    ref = GenerationRef(tenant, source_id or uuid.uuid4(), 1)
    library.source(tenant, made_of, ref.source_id)
    write(library, ref, made_of.passages)
    return ref


def write(library: Library, ref: GenerationRef, passages: Sequence[Passage], *, publish: bool = True) -> None:
    """Store chunks, vectors and terms of a generation; publish it unless told otherwise."""
    chunks = [passage.chunk(ordinal) for ordinal, passage in enumerate(passages)]
    terms = {chunk.ordinal: terms_of(chunk.indexed_text) for chunk in chunks}
    vectors = EMBEDDER.embed([chunk.indexed_text for chunk in chunks])
    with library.stores(ref) as (knowledge, index, keywords):
        knowledge.replace_chunks(ref, chunks)
        index.put(ref, library.active_set(), dict(enumerate(vectors)))
        keywords.put(ref, terms)
    if publish:
        library.publish(ref, len(chunks), sum(term.count for counts in terms.values() for term in counts))


class MemoryLibrary:
    """Library in memory."""

    def __init__(self) -> None:
        self.shelf = MemoryShelf({1: EMBEDDER.model(), 2: OTHER_EMBEDDER.model()})

    def tenant(self) -> uuid.UUID:
        tenant = uuid.uuid4()
        self.shelf.active_sets[tenant] = 1
        return tenant

    def active_set(self) -> int:
        return 1

    def use_other_set(self, tenant: uuid.UUID) -> None:
        self.shelf.active_sets[tenant] = 2

    def source(self, tenant: uuid.UUID, made_of: Document, source_id: uuid.UUID) -> None:
        self.shelf.sources[tenant, source_id] = MemorySource(
            auth_subject=made_of.subject,
            title=made_of.title,
            media_type=made_of.media_type,
            indexed=made_of.indexed,
            language=made_of.language,
            document_date=made_of.document_date,
            attributes=made_of.attributes,
        )

    @contextmanager
    def stores(self, ref: GenerationRef) -> Iterator[Stores]:
        yield MemoryKnowledge(self.shelf), MemoryVectors(self.shelf), MemoryKeywords(self.shelf)

    def publish(self, ref: GenerationRef, chunk_count: int, term_total: int) -> None:
        source = self._source(ref)
        source.published_generation, source.published_version = ref.generation, ref.generation
        source.chunk_count, source.term_total = chunk_count, term_total

    def remove(self, ref: GenerationRef) -> None:
        self._source(ref).removed = True

    def move(self, ref: GenerationRef, subject: str) -> None:
        self._source(ref).auth_subject = subject

    def move_copies(self, ref: GenerationRef, kinds: Set[str]) -> None:
        self.shelf.move_copies(ref, kinds)

    def retriever(self, tenant: uuid.UUID) -> Retriever:
        return MemoryRetriever(self.shelf, tenant, low_confidence_threshold=LOW_CONFIDENCE)

    def _source(self, ref: GenerationRef) -> MemorySource:
        return self.shelf.sources[ref.tenant_id, ref.source_id]


class PostgresLibrary:
    """Library in Postgres: written by the worker's role, searched by the gateway's."""

    def __init__(self, services: EmbeddedServices) -> None:
        """In a database of its own: the first embedding set of a database is what its new tenants use."""
        name = f"library_{uuid.uuid4().hex}"
        services.copy_database(MIGRATED, name)
        self.superuser_url = services.database_url("postgres", name)
        self._migrator, self.worker, self.gateway = (
            build_engine(services.database_url(f"docmill_{role}", name), pool_size=1, application="library")
            for role in ("migrator", "worker", "gateway")
        )
        self._set = ensure_embedding_set(self._migrator, EMBEDDER.model())
        self._other_set = ensure_embedding_set(self._migrator, OTHER_EMBEDDER.model())

    def close(self) -> None:
        for engine in (self._migrator, self.worker, self.gateway):
            engine.dispose()

    def tenant(self) -> uuid.UUID:
        tenant = create_tenant(self._migrator, f"library-{uuid.uuid4()}")
        self._use_set(tenant, self._set)
        return tenant

    def active_set(self) -> int:
        return self._set

    def use_other_set(self, tenant: uuid.UUID) -> None:
        self._use_set(tenant, self._other_set)

    def _use_set(self, tenant: uuid.UUID, set_id: int) -> None:
        self._change(tenant, "UPDATE tenants SET active_set = :set WHERE tenant_id = :tenant", set=set_id)

    def source(self, tenant: uuid.UUID, made_of: Document, source_id: uuid.UUID) -> None:
        self._ensure_subject(tenant, made_of.subject)
        self._change(
            tenant,
            "INSERT INTO sources (tenant_id, source_id, kind, title, media_type, auth_subject, subject_no, indexed,"
            " status, desired_generation, language, document_date, attributes)"
            " SELECT :tenant, :source, 'file', :title, :type, s.subject, s.subject_no, :indexed, 'ingesting', 1,"
            "        :language, :date, CAST(:attributes AS jsonb) FROM subjects s"
            "  WHERE s.tenant_id = :tenant AND s.subject = :subject",
            source=source_id,
            title=made_of.title,
            type=made_of.media_type,
            indexed=made_of.indexed,
            language=made_of.language,
            date=made_of.document_date,
            attributes=json.dumps(made_of.attributes),
            subject=made_of.subject,
        )

    def _ensure_subject(self, tenant: uuid.UUID, subject: str) -> None:
        self._change(
            tenant,
            "INSERT INTO subjects (tenant_id, subject, owner) VALUES (:tenant, :subject, 'somebody')"
            " ON CONFLICT DO NOTHING",
            subject=subject,
        )

    @contextmanager
    def stores(self, ref: GenerationRef) -> Iterator[Stores]:
        self._change(
            ref.tenant_id,
            "INSERT INTO generations (tenant_id, source_id, generation, file_version, priority, status)"
            " VALUES (:tenant, :source, :generation, :generation, 'bulk', 'ingesting') ON CONFLICT DO NOTHING",
            source=ref.source_id,
            generation=ref.generation,
        )
        with tenant_transaction(self.worker, ref.tenant_id) as connection:
            of = (connection, ref.tenant_id)
            yield PostgresKnowledge(*of), PostgresVectors(*of), PostgresKeywords(*of)
            connection.commit()

    def publish(self, ref: GenerationRef, chunk_count: int, term_total: int) -> None:
        self._change(
            ref.tenant_id,
            "UPDATE sources SET published_generation = :generation, published_version = :generation, status = 'ready',"
            " published_at = clock_timestamp(), chunk_count = :chunks, term_total = :terms"
            " WHERE tenant_id = :tenant AND source_id = :source",
            source=ref.source_id,
            generation=ref.generation,
            chunks=chunk_count,
            terms=term_total,
        )

    def remove(self, ref: GenerationRef) -> None:
        self._change(
            ref.tenant_id,
            "UPDATE sources SET status = 'removed' WHERE tenant_id = :tenant AND source_id = :source",
            source=ref.source_id,
        )

    def move(self, ref: GenerationRef, subject: str) -> None:
        self._ensure_subject(ref.tenant_id, subject)
        self._change(
            ref.tenant_id,
            "UPDATE sources s SET auth_subject = j.subject, subject_no = j.subject_no FROM subjects j"
            " WHERE s.tenant_id = :tenant AND s.source_id = :source AND j.tenant_id = :tenant AND j.subject = :subject",
            source=ref.source_id,
            subject=subject,
        )

    def move_copies(self, ref: GenerationRef, kinds: Set[str]) -> None:
        tables = {"chunks": "chunks", "terms": "chunk_terms", "vectors": "chunk_embeddings"}
        for kind in kinds:
            table, key = tables[kind], "source_id" if kind == "chunks" else "source_no"
            self._change(
                ref.tenant_id,
                f"UPDATE {table} r SET subject_no = s.subject_no FROM sources s WHERE r.tenant_id = :tenant"
                f" AND s.tenant_id = :tenant AND s.source_id = :source AND r.{key} = s.{key}",
                source=ref.source_id,
            )

    def retriever(self, tenant: uuid.UUID) -> Retriever:
        return PostgresRetriever(self.gateway, tenant, low_confidence_threshold=LOW_CONFIDENCE)

    def _change(self, tenant: uuid.UUID, statement: str, **values: Any) -> None:
        with tenant_transaction(self.worker, tenant) as connection:
            connection.execute(text(statement), {"tenant": tenant, **values})
            connection.commit()
