"""Alembic migrations; run by the migrator, never by a service."""
