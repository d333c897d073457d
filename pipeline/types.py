"""Frozen values shared by every layer: documents, blocks, chunks, hits and the principal."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

# --- who asks -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking: a tenant, a user, and what the token narrows or grants.

    ``narrowed_to`` is the token's ``subjects`` claim (``None`` when the token carries none); it can
    only take subjects away from those the user holds.
    """

    tenant_id: uuid.UUID
    user: str
    narrowed_to: tuple[str, ...] | None = None
    scopes: frozenset[str] = frozenset()

    @property
    def own_subject(self) -> str:
        return f"user:{self.user}"


# --- what a document is -------------------------------------------------------------------


class SourceKind(StrEnum):
    FILE = "file"
    URL = "url"
    ARTIFACT = "artifact"


class Priority(StrEnum):
    INTERACTIVE = "interactive"
    BULK = "bulk"


class IngestMode(StrEnum):
    """What an upload asks for: a searchable source, a readable one, or only the file."""

    INDEX = "index"
    EXTRACT = "extract"
    NONE = "none"


class FileState(StrEnum):
    PENDING = "pending"
    STORED = "stored"
    QUARANTINED = "quarantined"
    DELETING = "deleting"
    DELETED = "deleted"


class SourceStatus(StrEnum):
    """The reader's view of a source; ``REMOVED`` is a tombstone no caller sees."""

    PENDING = "pending"
    INGESTING = "ingesting"
    READY = "ready"
    FAILED = "failed"
    CANCELLED = "cancelled"
    REMOVED = "removed"


class GenerationStatus(StrEnum):
    """One attempt to ingest one version of a source."""

    QUEUED = "queued"
    INGESTING = "ingesting"
    PUBLISHED = "published"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"


class StageStatus(StrEnum):
    """State of one stage (or unit) of one generation in the ledger.

    ``FANNED`` is a stage whose work is in units: it has no lease of its own.
    """

    QUEUED = "queued"
    RUNNING = "running"
    FANNED = "fanned"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class GenerationRef:
    """Identity of one ingestion attempt; the only thing a task message carries."""

    tenant_id: uuid.UUID
    source_id: uuid.UUID
    generation: int

    @property
    def blob_owner(self) -> str:
        """The name under which this generation links its intermediate values."""
        return f"generation:{self.source_id}:{self.generation}"


class PageMethod(StrEnum):
    NATIVE = "native"
    OCR = "ocr"
    MIXED = "mixed"
    VISION = "vision"
    BLANK = "blank"
    SKIPPED = "skipped"


class BlockKind(StrEnum):
    HEADING = "heading"
    PARAGRAPH = "paragraph"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CODE = "code"
    CAPTION = "caption"
    HEADER = "header"
    FOOTER = "footer"
    DESCRIPTION = "description"


class ChunkKind(StrEnum):
    TEXT = "text"
    TABLE = "table"
    CODE = "code"
    TRANSCRIPT = "transcript"
    DESCRIPTION = "description"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on a displayed (rotated) page; fractions of its width and height, origin top left."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of a table; ``row`` and ``column`` count from 0."""

    row: int
    column: int
    text: str
    row_span: int = 1
    column_span: int = 1
    header: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A grid of cells. ``part`` and ``parts`` count from 1 when a long table was stored in row slices."""

    rows: int
    columns: int
    cells: tuple[Cell, ...]
    part: int = 1
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Block:
    """One structural piece of a document, in reading order.

    ``level`` is 1..6 for headings and the nesting depth (from 0) for list items. ``page`` and ``slide``
    count from 1. ``confidence`` is ``None`` when the text was read rather than recognised, else 0..1.
    ``hidden`` text is stored but left out of Markdown and index. ``marker`` is a list item's own
    marker as shown (``-``, ``3.``). ``section`` is the path of nested parts (attachments, notes).
    """

    kind: BlockKind
    text: str
    level: int = 0
    page: int | None = None
    boxes: tuple[Box, ...] = ()
    table: Table | None = None
    marker: str | None = None
    slide: int | None = None
    sheet: str | None = None
    cells: str | None = None
    language: str | None = None
    section: tuple[str, ...] = ()
    method: PageMethod = PageMethod.NATIVE
    confidence: float | None = None
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """One physical page: size in points as displayed, and how its text was had."""

    page: int
    width: float
    height: float
    rotation: int = 0
    method: PageMethod = PageMethod.NATIVE
    confidence: float | None = None
    garble: float = 0.0
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """One recognised word with its box and the engine's confidence, 0..1."""

    text: str
    box: Box
    confidence: float
    line: int
    paragraph: int


@dataclass(frozen=True, slots=True)
class RecognisedPage:
    """What OCR read on one page: words in reading order and the mean confidence, 0..1 (0 when unknown)."""

    page: int
    words: tuple[Word, ...]
    confidence: float
    rotation: int = 0


@dataclass(frozen=True, slots=True)
class DocumentProfile:
    """What opening a document tells before it is read: pages when it has pages, else 0."""

    pages: int
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text as it stands on a page, with the font evidence the document pass needs.

    ``size`` is the font height in points as displayed; ``box`` is in displayed page space. ``order``
    is the line's place in the page's content stream. ``table`` is the index of the window's table that
    already holds this line's text. ``angle`` is how far the text is turned clockwise on the displayed page
    (0, 90, 180, 270). A text that ends with U+00AD ends with a hyphen that may join it to the next line.
    """

    page: int
    text: str
    box: Box
    size: float
    bold: bool = False
    italic: bool = False
    monospace: bool = False
    hidden: bool = False
    order: int = 0
    table: int | None = None
    angle: int = 0


@dataclass(frozen=True, slots=True)
class WindowText:
    """What extraction read from one window of pages, before the document pass.

    Paged formats give ``lines`` (and ``tables``, blocks that stand where their first line stood); formats
    with their own structure give finished ``blocks`` and no lines.
    """

    pages: tuple[Page, ...] = ()
    lines: tuple[Line, ...] = ()
    tables: tuple[Block, ...] = ()
    blocks: tuple[Block, ...] = ()
    title: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractedDocument:
    """Blocks and page map of a whole document."""

    blocks: tuple[Block, ...]
    pages: tuple[Page, ...] = ()
    title: str | None = None
    warnings: tuple[str, ...] = ()
    truncated: bool = False


# --- what is indexed ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Location:
    """Where in the document a chunk stands; pages from 1, boxes in displayed page space, times in seconds."""

    pages: tuple[int, ...] = ()
    boxes: tuple[Box, ...] = ()
    slide: int | None = None
    sheet: str | None = None
    cells: str | None = None
    start_s: float | None = None
    end_s: float | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a document that is embedded, keyword-indexed and cited.

    ``content`` is the body as it stands in the document; heading path + body (:attr:`indexed_text`)
    is what is embedded, keyword-indexed and counted. ``content_hash`` is the sha256 hex digest of
    :attr:`indexed_text`. ``first_block`` and ``last_block`` are inclusive block indexes.
    """

    ordinal: int
    kind: ChunkKind
    content: str
    heading_path: tuple[str, ...]
    location: Location
    first_block: int
    last_block: int
    token_count: int
    content_hash: str
    confidence: float | None = None
    method: PageMethod = PageMethod.NATIVE
    metadata: dict[str, Json] = field(default_factory=dict)

    @property
    def indexed_text(self) -> str:
        return index_text(self.heading_path, self.content)


def index_text(heading_path: tuple[str, ...], content: str) -> str:
    """The text that is embedded and keyword-indexed for a chunk: its heading path, then its body."""
    return " > ".join(heading_path) + "\n" + content if heading_path else content


def chunk_id(source_id: uuid.UUID, ordinal: int) -> uuid.UUID:
    """The public name of a chunk: UUIDv5(source, ordinal), stable across edits of the document."""
    return uuid.uuid5(source_id, str(ordinal))


@dataclass(frozen=True, slots=True)
class TermCount:
    """How often a term occurs in a chunk."""

    term: str
    count: int


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """Identity of an embedding model; its size in dimensions, its window in its own tokens.

    ``absolute_floor`` is the similarity ((cosine + 1) / 2) under which text counts as unrelated: a
    property of the model, calibrated and not copied.
    """

    provider: str
    model: str
    version: str
    dimensions: int
    window: int
    absolute_floor: float


# --- what a search answers ----------------------------------------------------------------


class SearchMode(StrEnum):
    HYBRID = "hybrid"
    VECTOR = "vector"
    KEYWORD = "keyword"


class NothingReason(StrEnum):
    """Why a search has no hits; each has its own sentence, none looks outside the permitted set."""

    NO_ACCESS = "no-access"
    EMPTY_CORPUS = "empty-corpus"
    NO_MATCH = "no-match"
    BELOW_FLOOR = "below-floor"


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Metadata filters, applied inside each leg. Empty fields do not filter."""

    source_ids: tuple[uuid.UUID, ...] = ()
    media_types: tuple[str, ...] = ()
    date_from: datetime | None = None
    date_to: datetime | None = None
    page: int | None = None
    language: str | None = None
    metadata: dict[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VectorSignal:
    rank: int
    similarity: float


@dataclass(frozen=True, slots=True)
class KeywordSignal:
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Hit:
    """One cited search hit. ``score`` is in (0, 1]: the fused sum over the best of this answer."""

    chunk_id: uuid.UUID
    source_id: uuid.UUID
    source_version: int
    file_id: uuid.UUID | None
    title: str
    kind: ChunkKind
    content: str
    content_hash: str
    heading_path: tuple[str, ...]
    location: Location
    score: float
    vector: VectorSignal | None
    keyword: KeywordSignal | None
    method: PageMethod
    confidence: float | None
    low_confidence: bool
    excerpt: str


@dataclass(frozen=True, slots=True)
class Found:
    hits: tuple[Hit, ...]
    under_filled: bool
    interpretation: dict[str, Json]
    timings_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Nothing:
    reason: NothingReason
    message: str


RetrievalOutcome: TypeAlias = Found | Nothing
