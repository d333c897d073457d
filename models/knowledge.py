"""Blocks, pages, chunks, terms and vectors of a generation."""

from __future__ import annotations

import uuid
from typing import Any

from pgvector.sqlalchemy import HALFVEC
from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    SmallInteger,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, CreatedAt, Key, Ordinal, TenantKey, Words

_GENERATION = ["tenant_id", "source_id", "generation"]
_TO_GENERATION = ["generations.tenant_id", "generations.source_id", "generations.generation"]


class BlockRow(Base):
    """One block as JSON (at most 64 KB), read in windows by its index."""

    __tablename__ = "blocks"
    __table_args__ = (ForeignKeyConstraint(_GENERATION, _TO_GENERATION, ondelete="CASCADE"),)

    tenant_id: Mapped[TenantKey]
    source_id: Mapped[Key]
    generation: Mapped[Ordinal]
    block: Mapped[Ordinal]
    page: Mapped[int | None]
    body: Mapped[Words]


class PageRow(Base):
    __tablename__ = "pages"
    __table_args__ = (
        ForeignKeyConstraint(_GENERATION, _TO_GENERATION, ondelete="CASCADE"),
        CheckConstraint("method IN ('native', 'ocr', 'mixed', 'vision', 'blank', 'skipped')", name="method"),
    )

    tenant_id: Mapped[TenantKey]
    source_id: Mapped[Key]
    generation: Mapped[Ordinal]
    page: Mapped[Ordinal]
    width: Mapped[float]
    height: Mapped[float]
    rotation: Mapped[int]
    method: Mapped[Words]
    confidence: Mapped[float | None]
    garble: Mapped[float]
    warning: Mapped[Words | None]


class ChunkRow(Base):
    """A chunk. ``chunk_id`` is its public name, resolved in the published generation only."""

    __tablename__ = "chunks"
    __table_args__ = (
        ForeignKeyConstraint(_GENERATION, _TO_GENERATION, ondelete="CASCADE"),
        CheckConstraint("kind IN ('text', 'table', 'code', 'transcript', 'description')", name="kind"),
        # No prefix of these is a prefix of the key: as long as the statistics know nothing of a new tenant, the planner
        # takes any index that shares one, and reads a whole source (or tenant) for each chunk it looks up.
        Index("ix_chunks_chunk_id", "chunk_id"),
        Index("ix_chunks_content_hash", "content_hash", "source_id"),
    )

    tenant_id: Mapped[TenantKey]
    source_id: Mapped[Key]
    generation: Mapped[Ordinal]
    ordinal: Mapped[Ordinal]
    chunk_id: Mapped[uuid.UUID] = mapped_column(Uuid)
    subject_no: Mapped[int]
    kind: Mapped[Words]
    content: Mapped[Words]
    heading_path: Mapped[list[str]] = mapped_column(ARRAY(Text))
    pages: Mapped[list[int]] = mapped_column(ARRAY(Integer))
    location: Mapped[dict[str, Any]] = mapped_column(JSONB)
    first_block: Mapped[int]
    last_block: Mapped[int]
    token_count: Mapped[int]
    content_hash: Mapped[Words]
    method: Mapped[Words]
    confidence: Mapped[float | None]
    attributes: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))


class ChunkTerm(Base):
    """The keyword index: how often a term stands in a chunk of ``length`` terms."""

    __tablename__ = "chunk_terms"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "source_no"], ["sources.tenant_id", "sources.source_no"], ondelete="CASCADE"
        ),
        # What scoring needs is in the key's index, so that postings, scattered over the table, are read from there
        # (measured, 36,000 postings of 200,000 chunks: 516 buffers instead of 12,250).
        PrimaryKeyConstraint(
            *("tenant_id", "term", "subject_no", "source_no", "generation", "ordinal"),
            postgresql_include=["tf", "length"],
        ),
        # As for chunks: with the tenant in front it was taken for a new tenant's searches, which then read all of the
        # tenant's terms (measured, 10,000 chunks: 270 ms instead of 5).
        Index("ix_chunk_terms_generation", "source_no", "generation"),
    )

    tenant_id: Mapped[TenantKey]
    term: Mapped[Words] = mapped_column(primary_key=True)
    subject_no: Mapped[Ordinal]
    source_no: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    generation: Mapped[Ordinal]
    ordinal: Mapped[Ordinal]
    tf: Mapped[int] = mapped_column(SmallInteger)
    length: Mapped[int]


class EmbeddingSet(Base):
    """One embedding model in use by the deployment; a set has its own partition of vectors."""

    __tablename__ = "embedding_sets"
    __table_args__ = (
        UniqueConstraint("provider", "model", "version", "dimensions"),
        CheckConstraint("state IN ('building', 'active', 'standby', 'retired')", name="state"),
    )

    set_id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    name: Mapped[Words]
    provider: Mapped[Words]
    model: Mapped[Words]
    version: Mapped[Words]
    dimensions: Mapped[int]
    token_window: Mapped[int]
    absolute_floor: Mapped[float]
    state: Mapped[Words]
    created_at: Mapped[CreatedAt]


class ChunkEmbedding(Base):
    """A chunk's vector in one set; partitioned by set, each partition checks its own dimension."""

    __tablename__ = "chunk_embeddings"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "source_no"], ["sources.tenant_id", "sources.source_no"], ondelete="CASCADE"
        ),
        {"postgresql_partition_by": "LIST (set_id)"},
    )

    tenant_id: Mapped[TenantKey]
    set_id: Mapped[Ordinal]
    source_no: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    generation: Mapped[Ordinal]
    ordinal: Mapped[Ordinal]
    subject_no: Mapped[int]
    embedding: Mapped[Any] = mapped_column(HALFVEC(), nullable=False)
