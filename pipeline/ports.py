"""The Protocols the core owns. Adapters live in ``storage/``, ``pipeline/engines/`` and ``pipeline/testing/``."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from pipeline.errors import Failure
from pipeline.flow import Stage
from pipeline.ledger import Backlog, Candidate, Claim, Overdue, UnitPlan, Work
from pipeline.types import (
    Block,
    Chunk,
    DocumentProfile,
    EmbeddingModel,
    ExtractedDocument,
    FileState,
    GenerationRef,
    ListPage,
    Page,
    Principal,
    Priority,
    RecognisedPage,
    RetrievalOutcome,
    SearchFilters,
    SearchMode,
    Source,
    StoredFile,
    TermCount,
    WindowText,
)

# --- bytes and values ---------------------------------------------------------------------


class BlobStore(Protocol):
    """JSON values by reference: compressed, content-addressed, garbage findable through its references."""

    def put(self, value: bytes, *, owner: str) -> str:
        """Store JSON bytes and link them to ``owner``; return the sha256 hex digest that names them."""

    def get(self, digest: str) -> bytes:
        """The bytes. Raises :class:`~pipeline.errors.NotFound`."""

    def release(self, owner: str) -> int:
        """Drop the links of ``owner`` and every value no link names any more; return how many values went."""


@dataclass(frozen=True, slots=True)
class StoredContent:
    """What the store holds under a key: size in bytes."""

    key: str
    byte_size: int


class FileContentStore(Protocol):
    """The bytes of files, in object storage. Every method raises ``TransientError('s3', …)`` on store trouble."""

    def put(self, key: str, content: BinaryIO, byte_size: int, media_type: str) -> None:
        """Store exactly ``byte_size`` bytes read from ``content``."""

    def fetch(self, key: str, target: Path) -> None:
        """Write the object to ``target``. Raises :class:`~pipeline.errors.NotFound`."""

    def read(self, key: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        """Stream the object or a range of it. Raises :class:`~pipeline.errors.NotFound`."""

    def stat(self, key: str) -> StoredContent | None:
        """Size of the object, None when there is none."""

    def delete(self, key: str) -> None:
        """Remove the object; removing what is not there is no error."""

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key that begins with ``prefix``."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """What a file row is made of before its bytes are stored."""

    file_id: uuid.UUID
    filename: str
    media_type: str
    byte_size: int
    auth_subject: str
    content_key: str


class FileMetadataStore(Protocol):
    """One row per file, tenant-scoped. Lives inside one unit of work."""

    def add_pending(self, new: NewFile) -> None:
        """Write the ``pending`` row: invisible to callers, visible to reconciliation."""

    def mark_stored(self, file_id: uuid.UUID, *, sha256: str, byte_size: int, media_type: str) -> bool:
        """Compare-and-set ``pending`` to ``stored``; False when the row is no longer pending."""

    def get(self, file_id: uuid.UUID, subjects: Sequence[str]) -> StoredFile:
        """A stored or quarantined file the subjects permit. Raises :class:`~pipeline.errors.NotFound`."""

    def page(self, subjects: Sequence[str], limit: int, cursor: str | None) -> ListPage[StoredFile]:
        """Newest first. Raises :class:`~pipeline.errors.Invalid` for a cursor that is not one of its own."""

    def find_same(self, auth_subject: str, sha256: str) -> StoredFile | None:
        """The oldest stored file of these bytes under this subject."""

    def move_state(self, file_id: uuid.UUID, *, expected: FileState, to: FileState) -> bool:
        """Compare-and-set a state; False when the file is not in ``expected``."""


# --- compute ------------------------------------------------------------------------------


class FileInspector(Protocol):
    """What content really is, from its bytes and container rules."""

    def sniff(self, content: Path, declared: str, filename: str) -> str | Failure:
        """The accepted media type, or why it is refused (``unsupported-type``, ``malformed``, ``encrypted``)."""


class DocumentParser(Protocol):
    """Bytes to structure. Runs hostile input, so every call goes to the sandbox."""

    def profile(self, content: Path, media_type: str) -> DocumentProfile | Failure:
        """Open the document; refuse it (``encrypted``, ``malformed``, ``too-many-pages``, …) or count its pages."""

    def read(self, content: Path, media_type: str, first_page: int, last_page: int) -> WindowText | Failure:
        """Read pages ``first_page``..``last_page`` (from 1, inclusive); 1..0 for a document without pages."""


class OcrProvider(Protocol):
    """Transcribes; does not interpret. Rasterising belongs to the adapter."""

    def available(self) -> bool:
        """Whether an engine and the configured languages are installed."""

    def recognize(
        self, content: Path, media_type: str, pages: Sequence[int], languages: Sequence[str]
    ) -> tuple[RecognisedPage, ...] | Failure:
        """Words, boxes and confidence of each page; an engine without a confidence says 0."""


class ChunkingStrategy(Protocol):
    version: str

    def split(self, blocks: Sequence[Block]) -> tuple[Chunk, ...]:
        """Blocks in reading order to chunks, ordinals from 0."""


class EmbeddingProvider(Protocol):
    def model(self) -> EmbeddingModel:
        """Identity, dimensions and floor of the model."""

    def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        """One unit vector per text, in order. Raises ``TransientError('embedder', …)``."""

    def count_tokens(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Length of each text in the model's own tokens."""


# --- index --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """Rows of one generation: chunks, chunks with a vector of a set, chunks with terms."""

    chunks: int
    vectors: int
    keyword_chunks: int


class KnowledgeStore(Protocol):
    """Chunks of a generation. Lives inside one unit of work."""

    def replace_chunks(self, ref: GenerationRef, chunks: Sequence[Chunk]) -> None:
        """Store exactly these chunks for the generation, whatever was there."""

    def chunks(self, ref: GenerationRef, first: int = 0, limit: int | None = None) -> tuple[Chunk, ...]:
        """Chunks in ordinal order."""

    def counts(self, ref: GenerationRef, embedding_set: int) -> IndexCounts:
        """What publication validates."""


class VectorIndex(Protocol):
    """Vectors of chunks, one per embedding set. Lives inside one unit of work."""

    def missing(self, ref: GenerationRef, embedding_set: int, limit: int) -> tuple[Chunk, ...]:
        """Chunks of the generation without a vector in the set, in ordinal order."""

    def reuse(self, ref: GenerationRef, embedding_set: int) -> int:
        """Copy vectors of equal chunk hashes from other generations of the same source; return how many."""

    def put(self, ref: GenerationRef, embedding_set: int, vectors: Mapping[int, Sequence[float]]) -> None:
        """Store vectors by ordinal. Raises ValueError for a wrong size, NaN or a zero norm."""


class KeywordIndex(Protocol):
    """Term rows of chunks. Lives inside one unit of work."""

    def put(self, ref: GenerationRef, terms: Mapping[int, Sequence[TermCount]]) -> None:
        """Replace the generation's term rows; a chunk without terms gets none."""


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """One search over the permitted rows. An empty ``subjects`` finds nothing."""

    subjects: tuple[str, ...]
    mode: SearchMode
    text: str
    terms: tuple[str, ...]
    vector: tuple[float, ...] | None
    embedding_set: int
    absolute_floor: float
    relative_floor: float
    limit: int
    filters: SearchFilters


class Retriever(Protocol):
    """Both legs, fusion and floors over one tenant's permitted rows."""

    def search(self, query: IndexQuery) -> RetrievalOutcome:
        """Found or Nothing; no row outside ``subjects`` influences either."""


# --- permission and queues ----------------------------------------------------------------


class AuthorizationPolicy(Protocol):
    def effective_subjects(self, principal: Principal) -> tuple[str, ...]:
        """The principal's own subject and memberships, narrowed by the token; read at the moment of use."""


@dataclass(frozen=True, slots=True)
class Doorbell:
    """One message to send after commit: a generation whose chain starts at ``stage``, or one unit of it."""

    ref: GenerationRef
    stage: Stage
    priority: Priority
    unit: int | None = None
    unit_pages: int = 1
    alone: bool = False


class TaskQueue(Protocol):
    """A doorbell, not a store: losing or doubling any message is harmless. Never blocks, never raises."""

    def ring(self, bells: Sequence[Doorbell]) -> None:
        """Ask for these to be published soon."""

    def ring_admission(self) -> None:
        """Ask for an admission round soon."""

    def ring_deletion(self, tenant_id: uuid.UUID, receipt_id: uuid.UUID) -> None:
        """Ask for a deletion to be carried out soon."""


# --- ledger and units of work -------------------------------------------------------------


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

    def published(self, source_id: uuid.UUID, subjects: Sequence[str]) -> tuple[GenerationRef, Source]:
        """The generation readers see. Raises NotFound; with no published generation the newest attempt's."""

    def work(self, ref: GenerationRef) -> Work:
        """What the stages of a generation work on. Raises :class:`~pipeline.errors.SourceGone`."""

    def describe(
        self, ref: GenerationRef, *, title: str | None, warnings: Sequence[str], pages: int, blocks: int
    ) -> None:
        """Record what extraction found on the generation."""

    def rate(
        self, ref: GenerationRef, *, confidence: float | None, low_confidence: bool, warnings: Sequence[str]
    ) -> None:
        """Record how sure recognition was; add warnings."""

    def measure(
        self,
        ref: GenerationRef,
        *,
        chunks: int | None,
        chunker: str | None,
        keyword_chunks: int | None,
        term_total: int | None,
    ) -> None:
        """Record counts that publication validates; None leaves one as it is."""

    def facts(self, ref: GenerationRef) -> GenerationFacts:
        """The recorded counts."""

    def publish(self, ref: GenerationRef, facts: PublishedFacts) -> bool:
        """The one guarded row update that makes a generation visible; False when it was superseded."""

    def fail(self, ref: GenerationRef, failure: Failure) -> None:
        """End the generation with a closed reason; an older published one stays readable."""


@dataclass(frozen=True, slots=True)
class GenerationFacts:
    """Counts recorded by the stages of one generation; ``active_set`` is the tenant's."""

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

    def close(self, receipt_id: uuid.UUID, objects_after: int) -> None:
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


class UnitOfWork(Protocol):
    """One transaction of one tenant: explicit commit, rollback by default."""

    files: FileMetadataStore
    sources: SourceStore
    ledger: Ledger
    documents: DocumentStore
    knowledge: KnowledgeStore
    vectors: VectorIndex
    keywords: KeywordIndex
    blobs: BlobStore
    deletions: DeletionStore

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
        """Generations in flight and the next to admit, in order of admission."""

    def open_deletions(self, limit: int) -> tuple[tuple[uuid.UUID, uuid.UUID], ...]:
        """(tenant, receipt) of deletions that are not complete."""

    def superseded(self, limit: int) -> tuple[GenerationRef, ...]:
        """Generations replaced long enough ago for their rows to go."""

    def exclusive(self, name: str) -> AbstractContextManager[bool]:
        """Hold a named lock of the deployment; False when another holds it."""
