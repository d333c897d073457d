"""Tenants, subjects, memberships and remembered requests."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKeyConstraint, Identity, Integer, UniqueConstraint
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from models.base import Base, CreatedAt, TenantKey, Words


class Tenant(Base):
    """A customer. Rows are seen by their own tenant only; the slug resolves through ``app.resolve_tenant``."""

    __tablename__ = "tenants"
    __table_args__ = (
        UniqueConstraint("slug"),
        ForeignKeyConstraint(["active_set"], ["embedding_sets.set_id"]),
        ForeignKeyConstraint(["standby_set"], ["embedding_sets.set_id"]),
    )

    tenant_id: Mapped[TenantKey]
    slug: Mapped[Words]
    active_set: Mapped[int]
    standby_set: Mapped[int | None]
    created_at: Mapped[CreatedAt]


class Subject(Base):
    """Whom knowledge belongs to; ``owner`` is its first writer. ``subject_no`` stands for it in the indexes."""

    __tablename__ = "subjects"
    __table_args__ = (
        UniqueConstraint("tenant_id", "subject_no"),
        ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"]),
    )

    tenant_id: Mapped[TenantKey]
    subject: Mapped[Words] = mapped_column(primary_key=True)
    subject_no: Mapped[int] = mapped_column(Integer, Identity(always=True))
    owner: Mapped[Words]
    created_at: Mapped[CreatedAt]


class Membership(Base):
    __tablename__ = "memberships"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "subject"], ["subjects.tenant_id", "subjects.subject"], ondelete="CASCADE"),
    )

    tenant_id: Mapped[TenantKey]
    member: Mapped[Words] = mapped_column(primary_key=True)
    subject: Mapped[Words] = mapped_column(primary_key=True)
    created_at: Mapped[CreatedAt]


class IdempotencyKey(Base):
    """A POST that was answered; the same key and body get the same answer for 24 hours."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"]),)

    tenant_id: Mapped[TenantKey]
    principal: Mapped[Words] = mapped_column(primary_key=True)
    route: Mapped[Words] = mapped_column(primary_key=True)
    key: Mapped[Words] = mapped_column(primary_key=True)
    body_hash: Mapped[Words]
    status: Mapped[int | None]
    response: Mapped[dict[str, Any] | None] = mapped_column(JSONB)
    created_at: Mapped[CreatedAt]
