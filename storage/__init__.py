"""Persistence adapters: object storage, Postgres repositories and indexes, the task producer."""
