"""The unit of work and the stores that live inside one: sources, ledger, documents, deletions."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from pipeline.errors import Failure
from pipeline.flow import Stage
from pipeline.ledger import Backlog, Candidate, Claim, Overdue, UnitPlan, Work
from pipeline.ports import BlobStore, Doorbell, FileMetadataStore, KeywordIndex, KnowledgeStore, VectorIndex
from pipeline.records import ListPage, Source, StoredFile
from pipeline.types import Block, EmbeddingModel, ExtractedDocument, GenerationRef, Json, Page, Priority


@dataclass(frozen=True, slots=True)
class NewSource:
    """A source about to be registered for a stored file."""

    file: StoredFile
    title: str
    indexed: bool
    priority: Priority


@dataclass(frozen=True, slots=True)
class RegisteredSource:
    """The source an upload ended at; ``created`` is False when equal bytes already had one."""

    source_id: uuid.UUID
    created: bool


@dataclass(frozen=True, slots=True)
class PublishedFacts:
    """What publication writes to the source's row."""

    chunk_count: int
    term_total: int
    page_count: int
    confidence: float | None
    low_confidence: bool


class SourceStore(Protocol):
    """Sources and their generations. Lives inside one unit of work."""

    def register(self, new: NewSource) -> RegisteredSource:
        """Source, link, generation 1 and its ``register`` row; or one more link to the live source of equal bytes."""

    def get(self, source_id: uuid.UUID, subjects: Sequence[str]) -> Source:
        """Raises :class:`~pipeline.errors.NotFound`; a removed source is not found."""

    def page(self, subjects: Sequence[str], limit: int, cursor: str | None) -> ListPage[Source]:
        """Newest first. Raises :class:`~pipeline.errors.Invalid` for a foreign cursor."""

    def hold(self, ref: GenerationRef) -> None:
        """Lock the source's row in share mode: the first statement of every finishing transaction.

        Raises :class:`~pipeline.errors.SourceGone` when it was removed, cancelled or superseded.
        """

    def readable(self, source_id: uuid.UUID, subjects: Sequence[str]) -> GenerationRef | None:
        """The generation readers see, None when none was published. Raises NotFound."""

    def work(self, ref: GenerationRef) -> Work:
        """What the stages of a generation work on. Raises :class:`~pipeline.errors.SourceGone`."""

    def set_media_type(self, ref: GenerationRef, media_type: str) -> None:
        """Record what the content was found to be."""

    def describe(
        self, ref: GenerationRef, *, title: str | None, warnings: Sequence[str], pages: int, blocks: int
    ) -> None:
        """Record what extraction found on the generation."""

    def rate(
        self,
        ref: GenerationRef,
        *,
        confidence: float | None,
        low_confidence: bool,
        warnings: Sequence[str],
        blocks: int,
    ) -> None:
        """Record how sure recognition was and how many blocks there are now; add warnings."""

    def measure_chunks(self, ref: GenerationRef, *, chunks: int, chunker: str) -> None:
        """Record what chunking made, for publication to validate."""

    def measure_terms(self, ref: GenerationRef, *, keyword_chunks: int, term_total: int) -> None:
        """Record what keyword indexing made: chunks with terms and the sum of their lengths in terms."""

    def facts(self, ref: GenerationRef) -> GenerationFacts:
        """The recorded counts."""

    def publish(self, ref: GenerationRef, facts: PublishedFacts) -> bool:
        """The one guarded row update that makes a generation visible; False when it was superseded."""

    def fail(self, ref: GenerationRef, failure: Failure) -> None:
        """End the generation with a closed reason; an older published one stays readable."""


@dataclass(frozen=True, slots=True)
class GenerationFacts:
    """Counts recorded by the stages of one generation."""

    chunk_count: int
    keyword_chunks: int
    term_total: int
    page_count: int
    block_count: int
    confidence: float | None
    low_confidence: bool
    warnings: tuple[str, ...]
    title: str | None


class Ledger(Protocol):
    """Leases, tokens, units and fan-in. Time is the database's clock. Lives inside one unit of work."""

    def claim(self, ref: GenerationRef, stage: Stage, unit: int | None, *, alone: bool) -> Claim:
        """Take the stage (or unit) if it may run now; count before the work."""

    def beat(self, ref: GenerationRef, stage: Stage, unit: int | None, token: uuid.UUID) -> bool:
        """Prolong the lease; False when it is lost."""

    def progress(self, ref: GenerationRef, stage: Stage, done: int, total: int) -> None:
        """Pages (or chunks) done of all, for readers."""

    def fan_out(self, ref: GenerationRef, stage: Stage, token: uuid.UUID, units: Sequence[UnitPlan]) -> None:
        """Write every unit and give up the stage's own lease. Raises LeaseLost."""

    def unit(self, ref: GenerationRef, stage: Stage, unit: int) -> UnitPlan:
        """The plan of one unit. Raises SourceGone when it is no more."""

    def units(self, ref: GenerationRef, stage: Stage) -> tuple[UnitPlan, ...]:
        """Every unit of a stage in order."""

    def finish_unit(self, ref: GenerationRef, stage: Stage, unit: int, token: uuid.UUID, output: str | None) -> bool:
        """Record a unit; True for the one that completed the stage. Raises LeaseLost."""

    def outputs(self, ref: GenerationRef, stage: Stage) -> tuple[str, ...]:
        """Blob digests of a stage's units, in order of unit."""

    def finish(self, ref: GenerationRef, stage: Stage, token: uuid.UUID | None) -> Stage | None:
        """Mark the stage succeeded (``token`` None: by its last unit) and queue the next; return it."""

    def fail(self, ref: GenerationRef, stage: Stage, unit: int | None, token: uuid.UUID) -> None:
        """Mark the stage failed. Raises LeaseLost."""

    def defer(
        self,
        ref: GenerationRef,
        stage: Stage,
        unit: int | None,
        token: uuid.UUID,
        dependency: str,
        delay_s: float | None,
    ) -> None:
        """Put it back, to run after a back-off that doubles with every transient failure."""

    def requeue_after_death(self, ref: GenerationRef, stage: Stage, unit: int | None, token: uuid.UUID) -> int:
        """Count a sandbox death and put it back to run at once; return how many there were."""

    def reclaim(self, overdue: Overdue) -> Doorbell | None:
        """Put an expired lease back (counting it) or take note of a lost doorbell; the bell to ring, if any."""

    def admit(self, candidate: Candidate) -> Doorbell | None:
        """Let a waiting generation in; None when it no longer waits."""


class DocumentStore(Protocol):
    """Blocks and page map of a generation. Lives inside one unit of work."""

    def replace(self, ref: GenerationRef, document: ExtractedDocument) -> None:
        """Store exactly these blocks and pages."""

    def blocks(self, ref: GenerationRef, first: int = 0, limit: int | None = None) -> tuple[Block, ...]:
        """Blocks in order from index ``first``."""

    def pages(self, ref: GenerationRef) -> tuple[Page, ...]:
        """The page map."""


class SubjectStore(Protocol):
    """Whom knowledge belongs to. Lives inside one unit of work."""

    def ensure_own(self, user: str) -> None:
        """Make sure ``user:<sub>`` exists, owned by the user."""

    def add_member(self, subject: str, member: str) -> None:
        """Make a user a member of a subject; a subject's first writer owns it."""


class DeletionStore(Protocol):
    """Tombstones and receipts. Lives inside one unit of work."""

    def remove_source(self, source_id: uuid.UUID, subjects: Sequence[str], *, with_file: bool) -> uuid.UUID:
        """Hide a source (and its files) at once; return the receipt's id. Raises NotFound."""

    def remove_file(self, file_id: uuid.UUID, subjects: Sequence[str]) -> uuid.UUID:
        """Hide a file and every source no other file is linked to; return the receipt's id. Raises NotFound."""

    def open_receipt(self, receipt_id: uuid.UUID) -> DeletionWork | None:
        """What is still to delete; None when the receipt is complete or unknown."""

    def purge(self, receipt_id: uuid.UUID) -> None:
        """Delete every row of the receipt's sources, note the counts before and after."""

    def drop_generation(self, ref: GenerationRef) -> None:
        """Delete every row of a superseded generation."""

    def close(self, receipt_id: uuid.UUID) -> None:
        """Files are gone: complete the receipt."""

    def receipt(self, receipt_id: uuid.UUID, subjects: Sequence[str]) -> Receipt:
        """Raises NotFound."""


@dataclass(frozen=True, slots=True)
class DeletionWork:
    """Object keys a deletion still has to remove."""

    content_keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a deletion found and left in each store."""

    receipt_id: uuid.UUID
    complete: bool
    before: Mapping[str, int]
    after: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Names one request of one tenant: who asked, for what, and the key the caller chose."""

    user: str
    route: str
    key: str


@dataclass(frozen=True, slots=True)
class Reservation:
    """The right to carry a request out; ``since`` tells it from a later one of the same key."""

    since: datetime


@dataclass(frozen=True, slots=True)
class Remembered:
    """An earlier request of the same key. ``status`` and ``body`` are None while it is under way."""

    fingerprint: str
    status: int | None
    body: dict[str, Json] | None


class RequestStore(Protocol):
    """Requests that carried an idempotency key, for 24 hours. Lives inside one unit of work."""

    def reserve(self, request: RequestKey, fingerprint: str) -> Reservation | Remembered:
        """Take the key, unless a request of the last 24 hours has it."""

    def remember(self, request: RequestKey, reservation: Reservation, status: int, body: dict[str, Json]) -> None:
        """Record the answer; nothing when another took the key over."""

    def release(self, request: RequestKey, reservation: Reservation) -> None:
        """Give the key back unused."""

    def forget_expired(self) -> int:
        """Delete the tenant's keys older than 24 hours; return how many."""


class UnitOfWork(Protocol):
    """One transaction of one tenant: explicit commit, rollback by default."""

    # Read-only, so that an adapter's own class serves as the port it implements.
    @property
    def files(self) -> FileMetadataStore: ...
    @property
    def sources(self) -> SourceStore: ...
    @property
    def subjects(self) -> SubjectStore: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def documents(self) -> DocumentStore: ...
    @property
    def knowledge(self) -> KnowledgeStore: ...
    @property
    def vectors(self) -> VectorIndex: ...
    @property
    def keywords(self) -> KeywordIndex: ...
    @property
    def blobs(self) -> BlobStore: ...
    @property
    def deletions(self) -> DeletionStore: ...
    @property
    def requests(self) -> RequestStore: ...

    def embedding_set(self, model: EmbeddingModel) -> int | None:
        """The set of a model, None when the deployment has none for it."""

    def active_set(self) -> int:
        """The tenant's embedding set, its row locked in share mode so that a promotion waits."""

    def commit(self) -> None:
        """Make everything of this unit of work durable."""


class UnitOfWorkFactory(Protocol):
    def __call__(self, tenant_id: uuid.UUID) -> AbstractContextManager[UnitOfWork]:
        """Begin a transaction of this tenant. Raises ``TransientError('postgres', …)``."""


class SweepFinder(Protocol):
    """What needs attention in any tenant: ids, states and times only."""

    def overdue(self, limit: int) -> tuple[Overdue, ...]:
        """Expired leases and queued rows whose doorbell was lost."""

    def backlog(self, limit: int) -> Backlog:
        """Generations in flight, and up to ``limit`` waiting ones of each tenant: interactive first, then by age."""

    def open_deletions(self, limit: int) -> tuple[tuple[uuid.UUID, uuid.UUID], ...]:
        """(tenant, receipt) of deletions that are not complete."""

    def superseded(self, limit: int, retention_s: float) -> tuple[GenerationRef, ...]:
        """Generations replaced long enough ago for their rows to go."""

    def exclusive(self, name: str, *, wait: bool = False) -> AbstractContextManager[bool]:
        """Hold a named lock of the deployment; False when another holds it and ``wait`` is off."""
