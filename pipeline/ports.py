"""The Protocols the core owns. Adapters live in ``storage/``, ``pipeline/engines/`` and ``pipeline/testing/``."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from pipeline.errors import Failure
from pipeline.flow import Stage
from pipeline.records import ListPage, StoredFile
from pipeline.types import (
    Block,
    Chunk,
    DocumentProfile,
    EmbeddingModel,
    FileState,
    GenerationRef,
    IngestMode,
    Principal,
    Priority,
    RecognisedPage,
    RetrievalOutcome,
    SearchFilters,
    SearchMode,
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
    ingest: IngestMode = IngestMode.INDEX
    priority: Priority = Priority.INTERACTIVE


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
        """One unit vector per text, in order. Raises ``TransientError('embedder', …)``, and ValueError for a blank
        text and for a model's vector of another size, NaN or zero length."""

    def count_tokens(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Length of each text in the model's own tokens."""

    def check(self) -> None:
        """Called once at start. Raises :class:`~pipeline.errors.ConfigurationError` when the model is not usable as
        configured, ``TransientError('embedder', …)`` when it is not reached."""


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

    def missing(self, ref: GenerationRef, embedding_set: int, first: int, last: int) -> tuple[Chunk, ...]:
        """Chunks ``first``..``last`` of the generation without a vector in the set, in ordinal order."""

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
    """One search over the permitted rows. An empty ``subjects`` finds nothing.

    ``candidates`` is how many hits a reranker wants to choose from; never fewer than ``limit`` are looked for.
    """

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
    candidates: int = 0


@dataclass(frozen=True, slots=True)
class ActiveSet:
    """The embedding set a tenant's searches use, and the model a query must be embedded with."""

    set_id: int
    model: EmbeddingModel


class Retriever(Protocol):
    """Both legs, fusion and floors over one tenant's permitted rows."""

    def active_set(self) -> ActiveSet:
        """The tenant's active set at this moment."""

    def search(self, query: IndexQuery) -> RetrievalOutcome:
        """Found or Nothing; no row outside ``subjects`` influences either. Interpretation and timings are left empty.

        Raises :class:`~pipeline.errors.StaleEmbeddingSet` when the query was embedded for a set that is no longer the
        active one, ValueError for a vector of another size, with a NaN or a zero norm.
        """


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
