"""Brings a database to the newest schema."""

from __future__ import annotations

from importlib import resources

import alembic.command
import alembic.config


def upgrade(dsn: str) -> None:
    """Run every migration that is missing. ``dsn`` is the URL of docmill_migrator.

    Raises what SQLAlchemy and Alembic raise; a failed migration leaves the schema as it was.
    """
    configuration = alembic.config.Config()
    configuration.set_main_option("script_location", str(resources.files("models") / "migrations"))
    configuration.set_main_option("path_separator", "os")
    # Not an option of the file: there a ``%`` in a password would be taken for interpolation.
    configuration.attributes["dsn"] = dsn.replace("postgresql://", "postgresql+psycopg2://", 1)
    alembic.command.upgrade(configuration, "head")
