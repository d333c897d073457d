"""Alembic's environment: one online connection of the migrator, acting as the owner."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine, text
from sqlalchemy.engine import Connection
from sqlalchemy.pool import NullPool

from models import Base


def run(connection: Connection) -> None:
    """Migrate over ``connection``; a lock that is not free within 3 s stops the migration, not the service."""
    connection.execute(text("SET ROLE docmill_owner"))
    connection.execute(text("SET lock_timeout = '3s'"))
    connection.commit()
    context.configure(connection=connection, target_metadata=Base.metadata, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


engine = create_engine(context.config.attributes["dsn"], poolclass=NullPool)
with engine.connect() as migrator:
    run(migrator)
