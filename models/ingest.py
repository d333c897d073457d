"""Sources, their generations and the ledger of stages and units."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Identity,
    Index,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, CreatedAt, Key, Moment, Ordinal, TenantKey, Words

_TO_GENERATION = ["generations.tenant_id", "generations.source_id", "generations.generation"]


class Source(Base):
    """What is knowledge. ``auth_subject`` here is the authority in every search."""

    __tablename__ = "sources"
    __table_args__ = (
        UniqueConstraint("tenant_id", "source_no"),
        ForeignKeyConstraint(["tenant_id", "auth_subject"], ["subjects.tenant_id", "subjects.subject"]),
        ForeignKeyConstraint(["tenant_id", "subject_no"], ["subjects.tenant_id", "subjects.subject_no"]),
        CheckConstraint("kind IN ('file', 'url', 'artifact')", name="kind"),
        CheckConstraint("status IN ('pending', 'ingesting', 'ready', 'failed', 'cancelled', 'removed')", name="status"),
        Index(
            "uq_sources_same_content",
            "tenant_id",
            "auth_subject",
            "content_hash",
            "indexed",
            unique=True,
            postgresql_where=text("kind = 'file' AND status IN ('pending', 'ingesting', 'ready')"),
        ),
        Index("ix_sources_listing", "tenant_id", "auth_subject", "created_at", "source_id"),
    )

    tenant_id: Mapped[TenantKey]
    source_id: Mapped[Key]
    source_no: Mapped[int] = mapped_column(BigInteger, Identity(always=True))
    kind: Mapped[Words]
    url: Mapped[Words | None]
    title: Mapped[Words]
    media_type: Mapped[Words]
    auth_subject: Mapped[Words]
    subject_no: Mapped[int]
    indexed: Mapped[bool]
    content_hash: Mapped[Words | None]
    status: Mapped[Words]
    desired_generation: Mapped[int]
    published_generation: Mapped[int | None]
    published_version: Mapped[int | None]
    chunk_count: Mapped[int] = mapped_column(server_default=text("0"))
    term_total: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    page_count: Mapped[int] = mapped_column(server_default=text("0"))
    confidence: Mapped[float | None]
    low_confidence: Mapped[bool] = mapped_column(server_default=text("false"))
    language: Mapped[Words | None]
    document_date: Mapped[Moment | None]
    attributes: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))
    created_at: Mapped[CreatedAt]
    published_at: Mapped[Moment | None]
    removed_at: Mapped[Moment | None]


class SourceFile(Base):
    """A file that gives a source its bytes; equal uploads are further links to the same source."""

    __tablename__ = "source_files"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "source_id"], ["sources.tenant_id", "sources.source_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(["tenant_id", "file_id"], ["files.tenant_id", "files.file_id"], ondelete="CASCADE"),
        Index("ix_source_files_file_id", "tenant_id", "file_id"),
    )

    tenant_id: Mapped[TenantKey]
    source_id: Mapped[Key]
    file_id: Mapped[Key]
    created_at: Mapped[CreatedAt]


class Generation(Base):
    """One attempt to ingest one version of a source; invisible until published."""

    __tablename__ = "generations"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "source_id"], ["sources.tenant_id", "sources.source_id"], ondelete="CASCADE"
        ),
        CheckConstraint(
            "status IN ('queued', 'ingesting', 'published', 'failed', 'cancelled', 'superseded')", name="status"
        ),
        CheckConstraint("(status = 'failed') = (failure_code IS NOT NULL)", name="failure"),
        Index(
            "ix_generations_backlog",
            "priority",
            "created_at",
            postgresql_where=text("status = 'queued'"),
        ),
        Index("ix_generations_in_flight", "tenant_id", postgresql_where=text("status = 'ingesting'")),
    )

    tenant_id: Mapped[TenantKey]
    source_id: Mapped[Key]
    generation: Mapped[Ordinal]
    file_id: Mapped[uuid.UUID | None] = mapped_column(Uuid)
    file_version: Mapped[int]
    priority: Mapped[Words]
    status: Mapped[Words]
    failure_code: Mapped[Words | None]
    failure_detail: Mapped[Words | None]
    chunker_version: Mapped[Words | None]
    title: Mapped[Words | None]
    warnings: Mapped[list[str]] = mapped_column(ARRAY(Text), server_default=text("'{}'"))
    page_count: Mapped[int] = mapped_column(server_default=text("0"))
    block_count: Mapped[int] = mapped_column(server_default=text("0"))
    chunk_count: Mapped[int] = mapped_column(server_default=text("0"))
    keyword_chunks: Mapped[int] = mapped_column(server_default=text("0"))
    term_total: Mapped[int] = mapped_column(BigInteger, server_default=text("0"))
    confidence: Mapped[float | None]
    low_confidence: Mapped[bool] = mapped_column(server_default=text("false"))
    created_at: Mapped[CreatedAt]
    admitted_at: Mapped[Moment | None]
    finished_at: Mapped[Moment | None]


class IngestStage(Base):
    """One stage of a generation. A ``queued`` row is the outbox; a ``fanned`` one has no lease of its own."""

    __tablename__ = "ingest_stages"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "source_id", "generation"], _TO_GENERATION, ondelete="CASCADE"),
        CheckConstraint("status IN ('queued', 'running', 'fanned', 'succeeded', 'failed')", name="status"),
        CheckConstraint("(status = 'running') = (token IS NOT NULL)", name="token"),
        Index(
            "ix_ingest_stages_open",
            "status",
            "available_at",
            postgresql_where=text("status IN ('queued', 'running')"),
        ),
    )

    tenant_id: Mapped[TenantKey]
    source_id: Mapped[Key]
    generation: Mapped[Ordinal]
    stage: Mapped[Words] = mapped_column(primary_key=True)
    status: Mapped[Words]
    token: Mapped[uuid.UUID | None] = mapped_column(Uuid)
    lease_until: Mapped[Moment | None]
    heartbeat_at: Mapped[Moment | None]
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    sandbox_deaths: Mapped[int] = mapped_column(server_default=text("0"))
    lost_leases: Mapped[int] = mapped_column(server_default=text("0"))
    lost_alone: Mapped[int] = mapped_column(server_default=text("0"))
    units_total: Mapped[int] = mapped_column(server_default=text("0"))
    units_done: Mapped[int] = mapped_column(server_default=text("0"))
    progress_done: Mapped[int] = mapped_column(server_default=text("0"))
    progress_total: Mapped[int] = mapped_column(server_default=text("0"))
    waiting_for: Mapped[Words | None]
    transient_count: Mapped[int] = mapped_column(server_default=text("0"))
    available_at: Mapped[CreatedAt]
    rung_at: Mapped[Moment | None]
    queued_at: Mapped[CreatedAt]
    started_at: Mapped[Moment | None]
    finished_at: Mapped[Moment | None]


class IngestUnit(Base):
    """One unit of a fanned-out stage: pages (or chunks) ``first_item``..``last_item``, inclusive."""

    __tablename__ = "ingest_units"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "source_id", "generation", "stage"],
            [
                "ingest_stages.tenant_id",
                "ingest_stages.source_id",
                "ingest_stages.generation",
                "ingest_stages.stage",
            ],
            ondelete="CASCADE",
        ),
        CheckConstraint("status IN ('queued', 'running', 'succeeded', 'failed')", name="status"),
        CheckConstraint("(status = 'running') = (token IS NOT NULL)", name="token"),
        Index(
            "ix_ingest_units_open",
            "status",
            "available_at",
            postgresql_where=text("status IN ('queued', 'running')"),
        ),
    )

    tenant_id: Mapped[TenantKey]
    source_id: Mapped[Key]
    generation: Mapped[Ordinal]
    stage: Mapped[Words] = mapped_column(primary_key=True)
    unit: Mapped[Ordinal]
    first_item: Mapped[int]
    last_item: Mapped[int]
    items: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))
    output: Mapped[Words | None]
    status: Mapped[Words]
    token: Mapped[uuid.UUID | None] = mapped_column(Uuid)
    lease_until: Mapped[Moment | None]
    heartbeat_at: Mapped[Moment | None]
    attempts: Mapped[int] = mapped_column(server_default=text("0"))
    sandbox_deaths: Mapped[int] = mapped_column(server_default=text("0"))
    lost_leases: Mapped[int] = mapped_column(server_default=text("0"))
    lost_alone: Mapped[int] = mapped_column(server_default=text("0"))
    waiting_for: Mapped[Words | None]
    transient_count: Mapped[int] = mapped_column(server_default=text("0"))
    available_at: Mapped[CreatedAt]
    rung_at: Mapped[Moment | None]
    queued_at: Mapped[CreatedAt]
    started_at: Mapped[Moment | None]
    finished_at: Mapped[Moment | None]
