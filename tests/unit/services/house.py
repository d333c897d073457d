"""One tenant in memory for the use cases: units of work that keep nothing unless they are committed.

Only what the gateway's services touch is here. The ledger, publication and deletion live by SQL and are tested on
Postgres.
"""

from __future__ import annotations

import copy
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import cast

from pipeline.errors import Failure, NotFound
from pipeline.records import Attempt, ListPage, Source
from pipeline.testing.content import MemoryContentStore
from pipeline.testing.documents import MemoryDocuments
from pipeline.testing.files import MemoryFiles
from pipeline.testing.knowledge import MemoryKnowledge, MemoryShelf, MemorySource
from pipeline.testing.policy import MemoryPolicy
from pipeline.testing.task_queue import MemoryTaskQueue
from pipeline.types import GenerationRef, GenerationStatus, Principal, SourceKind, SourceStatus
from pipeline.unit_of_work import (
    GenerationFacts,
    NewSource,
    Receipt,
    RegisteredSource,
    UnitOfWorkFactory,
)

TENANT = uuid.uuid4()
ANA = Principal(TENANT, "ana")
BEN = Principal(TENANT, "ben")


class Subjects:
    def __init__(self) -> None:
        self.known: set[str] = set()

    def ensure_own(self, user: str) -> None:
        self.known.add(f"user:{user}")


class Sources:
    """Registration as the database does it: one live source for equal bytes of a subject."""

    def __init__(self, files: MemoryFiles) -> None:
        self._files = files
        self._hashes: dict[uuid.UUID, str] = {}
        self.rows: dict[uuid.UUID, Source] = {}
        self.published: dict[uuid.UUID, GenerationFacts] = {}

    def register(self, new: NewSource) -> RegisteredSource:
        key = (new.file.auth_subject, new.file.sha256, new.indexed)
        for found in self.rows.values():
            if (found.auth_subject, self._hashes.get(found.source_id), found.indexed) == key:
                self._files.sources[new.file.file_id].append(found.source_id)
                return RegisteredSource(found.source_id, created=False)
        source = source_of(new.file.auth_subject, new.title, indexed=new.indexed, file_id=new.file.file_id)
        self.rows[source.source_id] = source
        self._hashes[source.source_id] = new.file.sha256
        self._files.sources[new.file.file_id].append(source.source_id)
        return RegisteredSource(source.source_id, created=True)

    def get(self, source_id: uuid.UUID, subjects: Sequence[str]) -> Source:
        found = self.rows.get(source_id)
        if found is None or found.auth_subject not in subjects:
            raise NotFound("no such source")
        return found

    def page(self, subjects: Sequence[str], limit: int, cursor: str | None) -> ListPage[Source]:
        assert cursor is None
        return ListPage(tuple(one for one in self.rows.values() if one.auth_subject in subjects)[:limit], None)

    def readable(self, source_id: uuid.UUID, subjects: Sequence[str]) -> GenerationRef | None:
        self.get(source_id, subjects)
        return GenerationRef(TENANT, source_id, 1) if source_id in self.published else None

    def facts(self, ref: GenerationRef) -> GenerationFacts:
        return self.published[ref.source_id]


class Deletions:
    def __init__(self, sources: Sources, files: MemoryFiles) -> None:
        self._sources = sources
        self._files = files
        self.receipts: dict[uuid.UUID, Receipt] = {}

    def remove_source(self, source_id: uuid.UUID, subjects: Sequence[str], *, with_file: bool) -> uuid.UUID:
        self._sources.get(source_id, subjects)
        del self._sources.rows[source_id]
        return self._receipt({"files": int(with_file)})

    def remove_file(self, file_id: uuid.UUID, subjects: Sequence[str]) -> uuid.UUID:
        file = self._files.get(file_id, subjects)
        for source in file.sources:
            self._sources.rows.pop(source, None)
        return self._receipt({"files": 1})

    def receipt(self, receipt_id: uuid.UUID, subjects: Sequence[str]) -> Receipt:
        if receipt_id not in self.receipts or "user:ana" not in subjects:
            raise NotFound("no such deletion")
        return self.receipts[receipt_id]

    def _receipt(self, before: dict[str, int]) -> uuid.UUID:
        made = Receipt(uuid.uuid4(), complete=False, before=before, after={})
        self.receipts[made.receipt_id] = made
        return made.receipt_id


class Stores:
    """Everything one tenant has; copied whole for each unit of work."""

    def __init__(self) -> None:
        self.subjects = Subjects()
        self.files = MemoryFiles(self.subjects.known)
        self.sources = Sources(self.files)
        self.deletions = Deletions(self.sources, self.files)
        self.documents = MemoryDocuments()
        self.shelf = MemoryShelf({})
        self.knowledge = MemoryKnowledge(self.shelf)
        self.committed = False

    def commit(self) -> None:
        self.committed = True


@dataclass
class House:
    """Adapters in memory around one tenant's stores."""

    stores: Stores = field(default_factory=Stores)
    policy: MemoryPolicy = field(default_factory=MemoryPolicy)
    content: MemoryContentStore = field(default_factory=MemoryContentStore)
    queue: MemoryTaskQueue = field(default_factory=MemoryTaskQueue)

    @property
    def units(self) -> UnitOfWorkFactory:
        return cast("UnitOfWorkFactory", self._unit)

    @contextmanager
    def _unit(self, tenant_id: uuid.UUID) -> Iterator[Stores]:
        assert tenant_id == TENANT
        working = copy.deepcopy(self.stores)
        yield working
        if working.committed:
            working.committed = False
            self.stores = working

    def source(self, subject: str = "user:ana") -> uuid.UUID:
        """A source that nothing was read of."""
        source = source_of(subject)
        self.stores.sources.rows[source.source_id] = source
        self.stores.shelf.sources[TENANT, source.source_id] = MemorySource(subject)
        return source.source_id

    def published(self, source_id: uuid.UUID, *, low_confidence: bool = False, warnings: tuple[str, ...] = ()) -> None:
        facts = GenerationFacts(0, 0, 0, 0, 0, 0.5 if low_confidence else None, low_confidence, warnings, None)
        self.stores.sources.published[source_id] = facts

    def failed(self, source_id: uuid.UUID, failure: Failure) -> None:
        rows = self.stores.sources.rows
        rows[source_id] = replace(rows[source_id], latest=Attempt(2, GenerationStatus.FAILED, failure))


def source_of(subject: str, title: str = "a.txt", *, indexed: bool = True, file_id: uuid.UUID | None = None) -> Source:
    return Source(
        source_id=uuid.uuid4(),
        kind=SourceKind.FILE,
        file_id=file_id,
        url=None,
        title=title,
        media_type="text/plain",
        auth_subject=subject,
        indexed=indexed,
        status=SourceStatus.PENDING,
        latest=Attempt(1, GenerationStatus.QUEUED, None),
        stage="register",
        progress_done=0,
        progress_total=0,
        queue=None,
        confidence=None,
        low_confidence=False,
        pages=0,
        chunks=0,
        version=1,
        published_at=None,
        created_at=datetime.now(UTC),
    )
