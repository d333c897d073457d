"""Brings a database to the newest schema."""

from __future__ import annotations

from importlib import resources

import alembic.command
import alembic.config
from sqlalchemy import NullPool, create_engine


def upgrade(dsn: str) -> None:
    """Run every migration that is missing. ``dsn`` is the URL of docmill_migrator.

    Raises what SQLAlchemy and Alembic raise; a failed migration leaves the schema as it was.
    """
    engine = create_engine(dsn.replace("postgresql://", "postgresql+psycopg2://", 1), poolclass=NullPool)
    configuration = alembic.config.Config()
    configuration.set_main_option("script_location", str(resources.files("models") / "migrations"))
    configuration.set_main_option("path_separator", "os")
    with engine.connect() as connection:
        configuration.attributes["connection"] = connection
        alembic.command.upgrade(configuration, "head")
