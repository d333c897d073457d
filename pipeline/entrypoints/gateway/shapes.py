"""JSON as callers see it. No storage key and no vector is in any of these."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue

from pipeline.errors import Failure
from pipeline.records import Source, StoredFile
from pipeline.types import (
    Block,
    Chunk,
    ChunkKind,
    FileState,
    Found,
    GenerationStatus,
    Hit,
    Location,
    Nothing,
    NothingReason,
    Page,
    PageMethod,
    SourceKind,
    SourceStatus,
    chunk_id,
)
from pipeline.unit_of_work import Receipt

T = TypeVar("T")

# What a deletion counts. A store that has not been counted yet has null for both numbers.
_STORES = ("chunks", "vectors", "keywords", "blobs", "objects")


class Listing(BaseModel, Generic[T]):
    """One page of a list; ``next_cursor`` is null on the last one."""

    items: list[T]
    next_cursor: str | None


# --- files ----------------------------------------------------------------------------------


class FileShape(BaseModel):
    id: uuid.UUID
    filename: str
    media_type: str
    byte_size: int
    sha256: str
    version: int
    subject: str
    state: FileState
    low_confidence: bool
    sources: list[uuid.UUID]
    created_at: datetime


class UploadShape(FileShape):
    """A stored file. ``source_id`` is the source it has now, ``duplicate_of`` the older file of the same bytes."""

    source_id: uuid.UUID | None
    duplicate_of: uuid.UUID | None


def file_shape(file: StoredFile) -> FileShape:
    return FileShape(
        id=file.file_id,
        filename=file.filename,
        media_type=file.media_type,
        byte_size=file.byte_size,
        sha256=file.sha256,
        version=file.version,
        subject=file.auth_subject,
        state=file.state,
        low_confidence=file.low_confidence,
        sources=list(file.sources),
        created_at=file.created_at,
    )


# --- sources --------------------------------------------------------------------------------


class FailureShape(BaseModel):
    """Why a document was not ingested; ``code`` is closed, ``remedy`` says what to do."""

    code: str
    detail: str
    remedy: str
    retryable: bool


class AttemptShape(BaseModel):
    generation: int
    status: GenerationStatus
    failure: FailureShape | None


class ProgressShape(BaseModel):
    """Pages (or chunks) done of all in the present stage."""

    done: int
    total: int


class QueueShape(BaseModel):
    position: int
    eta_s: float | None


class SourceShape(BaseModel):
    """``status`` is the reader's view: ``ready`` while any generation is published."""

    id: uuid.UUID
    kind: SourceKind
    file_id: uuid.UUID | None
    url: str | None
    title: str
    media_type: str
    subject: str
    indexed: bool
    status: SourceStatus
    latest: AttemptShape
    stage: str | None
    progress: ProgressShape
    queue: QueueShape | None
    failure: FailureShape | None
    confidence: float | None
    low_confidence: bool
    pages: int
    chunks: int
    entities: int
    version: int
    published_at: datetime | None
    created_at: datetime


def failure_shape(failure: Failure | None) -> FailureShape | None:
    if failure is None:
        return None
    return FailureShape(code=failure.code, detail=failure.detail, remedy=failure.remedy, retryable=failure.retryable)


def source_shape(source: Source) -> SourceShape:
    failure = failure_shape(source.latest.failure)
    queue = source.queue
    return SourceShape(
        id=source.source_id,
        kind=source.kind,
        file_id=source.file_id,
        url=source.url,
        title=source.title,
        media_type=source.media_type,
        subject=source.auth_subject,
        indexed=source.indexed,
        status=source.status,
        latest=AttemptShape(generation=source.latest.generation, status=source.latest.status, failure=failure),
        stage=source.stage,
        progress=ProgressShape(done=source.progress_done, total=source.progress_total),
        queue=QueueShape(position=queue.position, eta_s=queue.eta_s) if queue is not None else None,
        failure=failure,
        confidence=source.confidence,
        low_confidence=source.low_confidence,
        pages=source.pages,
        chunks=source.chunks,
        # No graph is extracted, so no source has any.
        entities=0,
        version=source.version,
        published_at=source.published_at,
        created_at=source.created_at,
    )


# --- reading --------------------------------------------------------------------------------


class DocumentShape(BaseModel):
    """A window of a document; ``next_block`` is where the next one begins, ``reason`` why there is nothing to read."""

    blocks: list[Block]
    markdown: str
    next_block: int | None
    low_confidence: bool
    warnings: list[str]
    reason: str | None
    retryable: bool


class PageShape(BaseModel):
    """One page of the quality map: size in points as displayed, how its text was had, how sure that is."""

    page: int
    width: float
    height: float
    rotation: int
    method: PageMethod
    confidence: float | None
    garble: float
    warning: str | None


class ExtractionShape(BaseModel):
    method: PageMethod
    confidence: float | None
    low_confidence: bool


class ChunkShape(BaseModel):
    """A chunk as it is indexed; ``citation_count`` is how many citations name it."""

    chunk_id: uuid.UUID
    ordinal: int
    kind: ChunkKind
    content: str
    heading_path: list[str]
    location: Location
    first_block: int
    last_block: int
    token_count: int
    content_hash: str
    extraction: ExtractionShape
    citation_count: int


def page_shape(page: Page) -> PageShape:
    return PageShape(
        page=page.page,
        width=page.width,
        height=page.height,
        rotation=page.rotation,
        method=page.method,
        confidence=page.confidence,
        garble=page.garble,
        warning=page.warning,
    )


def chunk_shape(source_id: uuid.UUID, chunk: Chunk, low_confidence_threshold: float) -> ChunkShape:
    low = chunk.confidence is not None and chunk.confidence < low_confidence_threshold
    return ChunkShape(
        chunk_id=chunk_id(source_id, chunk.ordinal),
        ordinal=chunk.ordinal,
        kind=chunk.kind,
        content=chunk.content,
        heading_path=list(chunk.heading_path),
        location=chunk.location,
        first_block=chunk.first_block,
        last_block=chunk.last_block,
        token_count=chunk.token_count,
        content_hash=chunk.content_hash,
        extraction=ExtractionShape(method=chunk.method, confidence=chunk.confidence, low_confidence=low),
        # No call emits citations, so no chunk has any.
        citation_count=0,
    )


# --- deletions ------------------------------------------------------------------------------


class DeletionShape(BaseModel):
    receipt_id: uuid.UUID


class CountShape(BaseModel):
    before: int | None
    after: int | None


class ReceiptShape(BaseModel):
    """What a deletion found and left in each store; null where it has not been counted yet."""

    receipt_id: uuid.UUID
    complete: bool
    stores: dict[str, CountShape]
    kept: dict[str, int]


def receipt_shape(receipt: Receipt) -> ReceiptShape:
    return ReceiptShape(
        receipt_id=receipt.receipt_id,
        complete=receipt.complete,
        stores={name: CountShape(before=receipt.before.get(name), after=receipt.after.get(name)) for name in _STORES},
        kept={"citation_snapshots": 0},
    )


# --- search ---------------------------------------------------------------------------------


class VectorShape(BaseModel):
    rank: int
    similarity: float


class KeywordShape(BaseModel):
    rank: int
    score: float


class SignalsShape(BaseModel):
    """What each leg says of a hit; ranks count from 1, null where the leg did not find it."""

    vector: VectorShape | None
    keyword: KeywordShape | None
    graph: None = None


class HitShape(BaseModel):
    chunk_id: uuid.UUID
    source_id: uuid.UUID
    source_version: int
    file_id: uuid.UUID | None
    title: str
    kind: ChunkKind
    content: str
    content_hash: str
    heading_path: list[str]
    location: Location
    score: float
    signals: SignalsShape
    extraction: ExtractionShape
    excerpt: str


class FoundShape(BaseModel):
    model_config = ConfigDict(title="Found")

    outcome: Literal["found"] = "found"
    hits: list[HitShape]
    under_filled: bool
    interpretation: dict[str, JsonValue]
    timings: dict[str, float]


class NothingShape(BaseModel):
    model_config = ConfigDict(title="Nothing")

    outcome: Literal["nothing"] = "nothing"
    reason: NothingReason
    message: str


def outcome_shape(outcome: Found | Nothing) -> FoundShape | NothingShape:
    if isinstance(outcome, Nothing):
        return NothingShape(reason=outcome.reason, message=outcome.message)
    return FoundShape(
        hits=_hit_shapes(outcome.hits),
        under_filled=outcome.under_filled,
        interpretation=outcome.interpretation,
        timings=outcome.timings_ms,
    )


def _hit_shapes(hits: Sequence[Hit]) -> list[HitShape]:
    return [
        HitShape(
            chunk_id=hit.chunk_id,
            source_id=hit.source_id,
            source_version=hit.source_version,
            file_id=hit.file_id,
            title=hit.title,
            kind=hit.kind,
            content=hit.content,
            content_hash=hit.content_hash,
            heading_path=list(hit.heading_path),
            location=hit.location,
            score=hit.score,
            signals=SignalsShape(
                vector=VectorShape(rank=hit.vector.rank, similarity=hit.vector.similarity) if hit.vector else None,
                keyword=KeywordShape(rank=hit.keyword.rank, score=hit.keyword.score) if hit.keyword else None,
            ),
            extraction=ExtractionShape(method=hit.method, confidence=hit.confidence, low_confidence=hit.low_confidence),
            excerpt=hit.excerpt,
        )
        for hit in hits
    ]
