"""Subjects and memberships in Postgres; tenants are resolved before one is known."""

from __future__ import annotations

import uuid

from sqlalchemy import Engine, text

from pipeline.types import EmbeddingModel
from storage.engine import tenant_transaction, translated
from storage.rows import Repository


class PostgresSubjects(Repository):
    """Adapter of :class:`pipeline.unit_of_work.SubjectStore`."""

    def ensure_own(self, user: str) -> None:
        self._ensure(f"user:{user}", user)

    def _ensure(self, subject: str, owner: str) -> None:
        self.change(
            "INSERT INTO subjects (tenant_id, subject, owner) VALUES (:tenant, :subject, :owner)"
            " ON CONFLICT DO NOTHING",
            subject=subject,
            owner=owner,
        )

    def add_member(self, subject: str, member: str) -> None:
        self._ensure(subject, member)
        self.change(
            "INSERT INTO memberships (tenant_id, subject, member) VALUES (:tenant, :subject, :member)"
            " ON CONFLICT DO NOTHING",
            subject=subject,
            member=member,
        )


def create_tenant(engine: Engine, slug: str) -> uuid.UUID:
    """The tenant of this slug, made on first use. Needs the migrator role."""
    with translated(), engine.begin() as connection:
        tenant: uuid.UUID = connection.execute(text("SELECT app.create_tenant(:slug)"), {"slug": slug}).scalar_one()
        return tenant


def tenant_exists(engine: Engine, tenant_id: uuid.UUID) -> bool:
    """Whether there is a tenant of this id."""
    with tenant_transaction(engine, tenant_id) as connection:
        statement = text("SELECT EXISTS (SELECT FROM tenants WHERE tenant_id = :tenant)")
        return bool(connection.execute(statement, {"tenant": tenant_id}).scalar_one())


def ensure_embedding_set(engine: Engine, model: EmbeddingModel) -> int:
    """The set of a model, made with its own partition when missing. Needs the migrator role."""
    with translated(), engine.begin() as connection:
        made: int = connection.execute(
            text("SELECT app.ensure_embedding_set(:name, :provider, :model, :version, :dimensions, :window, :floor)"),
            {
                "name": f"{model.model}-{model.version}",
                "provider": model.provider,
                "model": model.model,
                "version": model.version,
                "dimensions": model.dimensions,
                "window": model.window,
                "floor": model.absolute_floor,
            },
        ).scalar_one()
        return made
