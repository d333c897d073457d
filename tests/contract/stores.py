"""The stores of one unit of work, in memory and in Postgres, for the contracts that both hold."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from pipeline.ports import BlobStore, FileMetadataStore
from pipeline.testing.blobs import MemoryBlobs
from pipeline.testing.documents import MemoryDocuments
from pipeline.testing.files import MemoryFiles
from pipeline.types import GenerationRef
from pipeline.unit_of_work import DocumentStore
from tests.state import State

SUBJECTS = ("user:ana", "team:red")


@dataclass(frozen=True)
class Stores:
    files: FileMetadataStore
    blobs: BlobStore
    documents: DocumentStore


class House(Protocol):
    """One deployment."""

    def tenant(self) -> uuid.UUID:
        """A new tenant with the subjects of ``SUBJECTS``."""

    def open(self, tenant: uuid.UUID) -> AbstractContextManager[Stores]:
        """One unit of work; committed at the end."""

    def source(self, tenant: uuid.UUID) -> GenerationRef:
        """A generation under way."""


class MemoryHouse:
    def __init__(self) -> None:
        self._stores: defaultdict[uuid.UUID, Stores] = defaultdict(
            lambda: Stores(MemoryFiles(SUBJECTS), MemoryBlobs(), MemoryDocuments())
        )

    def tenant(self) -> uuid.UUID:
        return uuid.uuid4()

    @contextmanager
    def open(self, tenant: uuid.UUID) -> Iterator[Stores]:
        yield self._stores[tenant]

    def source(self, tenant: uuid.UUID) -> GenerationRef:
        return GenerationRef(tenant, uuid.uuid4(), 1)


class PostgresHouse:
    """As the worker's role."""

    def __init__(self, state: State) -> None:
        self.state = state

    def tenant(self) -> uuid.UUID:
        tenant = self.state.another_tenant()
        with self.state.units(tenant) as uow:
            uow.subjects.ensure_own("ana")
            uow.subjects.add_member("team:red", "ana")
            uow.commit()
        return tenant

    @contextmanager
    def open(self, tenant: uuid.UUID) -> Iterator[Stores]:
        with self.state.units(tenant) as uow:
            yield Stores(uow.files, uow.blobs, uow.documents)
            uow.commit()

    def source(self, tenant: uuid.UUID) -> GenerationRef:
        return self.state.admitted(tenant_id=tenant)
