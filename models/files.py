"""Files and their immutable versions; JSON values by reference."""

from __future__ import annotations

import uuid

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, CreatedAt, Key, Moment, Ordinal, TenantKey, Words


class File(Base):
    """The identity that outlives any version."""

    __tablename__ = "files"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "auth_subject"], ["subjects.tenant_id", "subjects.subject"]),
        CheckConstraint("state IN ('pending', 'stored', 'quarantined', 'deleting', 'deleted')", name="state"),
        Index("ix_files_listing", "tenant_id", "auth_subject", "created_at", "file_id"),
        Index("ix_files_unsettled", "tenant_id", "state", postgresql_where=text("state IN ('pending', 'deleting')")),
    )

    tenant_id: Mapped[TenantKey]
    file_id: Mapped[Key]
    auth_subject: Mapped[Words]
    filename: Mapped[Words]
    state: Mapped[Words]
    version: Mapped[int]
    low_confidence: Mapped[bool] = mapped_column(server_default=text("false"))
    ingest: Mapped[Words] = mapped_column(server_default=text("'index'"))
    priority: Mapped[Words] = mapped_column(server_default=text("'interactive'"))
    created_at: Mapped[CreatedAt]


class FileVersion(Base):
    """Bytes that never change; the content key is a UUID of ours and never leaves the services."""

    __tablename__ = "file_versions"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "file_id"], ["files.tenant_id", "files.file_id"], ondelete="CASCADE"),
        Index("ix_file_versions_sha256", "tenant_id", "sha256"),
    )

    tenant_id: Mapped[TenantKey]
    file_id: Mapped[Key]
    version: Mapped[Ordinal]
    content_key: Mapped[Words]
    byte_size: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[Words | None]
    declared_type: Mapped[Words]
    media_type: Mapped[Words]
    created_at: Mapped[CreatedAt]
    stored_at: Mapped[Moment | None]


class Blob(Base):
    """A JSON value, compressed, named by the sha256 of its bytes."""

    __tablename__ = "blobs"
    __table_args__ = (ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"]),)

    tenant_id: Mapped[TenantKey]
    digest: Mapped[Words] = mapped_column(primary_key=True)
    body: Mapped[bytes] = mapped_column(LargeBinary)
    byte_size: Mapped[int]
    created_at: Mapped[CreatedAt]


class BlobRef(Base):
    """Who needs a blob; a blob without one is garbage that can be found."""

    __tablename__ = "blob_refs"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "digest"], ["blobs.tenant_id", "blobs.digest"]),
        Index("ix_blob_refs_digest", "tenant_id", "digest"),
    )

    tenant_id: Mapped[TenantKey]
    owner: Mapped[Words] = mapped_column(primary_key=True)
    digest: Mapped[Words] = mapped_column(primary_key=True)


class DeletionReceipt(Base):
    """What a deletion found and left in each store."""

    __tablename__ = "deletion_receipts"
    __table_args__ = (ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"]),)

    tenant_id: Mapped[TenantKey]
    receipt_id: Mapped[Key]
    source_ids: Mapped[list[uuid.UUID]] = mapped_column(ARRAY(Uuid))
    file_ids: Mapped[list[uuid.UUID]] = mapped_column(ARRAY(Uuid))
    auth_subjects: Mapped[list[str]] = mapped_column(ARRAY(Text))
    before: Mapped[dict[str, int] | None] = mapped_column(JSONB)
    after: Mapped[dict[str, int] | None] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]
    completed_at: Mapped[Moment | None]
