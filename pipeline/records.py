"""Rows as the services see them: files, sources and pages of a list."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from pipeline.errors import Failure
from pipeline.types import FileState, GenerationStatus, SourceKind, SourceStatus

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file at its newest version. ``content_key`` is the store's business and never leaves a service."""

    file_id: uuid.UUID
    filename: str
    media_type: str
    byte_size: int
    sha256: str
    version: int
    auth_subject: str
    state: FileState
    content_key: str
    created_at: datetime
    low_confidence: bool = False
    sources: tuple[uuid.UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class QueuePosition:
    position: int
    eta_s: float | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """The newest attempt to ingest a source."""

    generation: int
    status: GenerationStatus
    failure: Failure | None


@dataclass(frozen=True, slots=True)
class Source:
    """What is knowledge, as a reader sees it."""

    source_id: uuid.UUID
    kind: SourceKind
    file_id: uuid.UUID | None
    url: str | None
    title: str
    media_type: str
    auth_subject: str
    indexed: bool
    status: SourceStatus
    latest: Attempt
    stage: str | None
    progress_done: int
    progress_total: int
    queue: QueuePosition | None
    confidence: float | None
    low_confidence: bool
    pages: int
    chunks: int
    version: int
    published_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ListPage(Generic[T]):
    """One page of a keyset-paged list."""

    items: tuple[T, ...]
    next_cursor: str | None
