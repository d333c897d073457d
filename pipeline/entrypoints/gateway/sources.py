"""``/v1/sources``: what is knowledge: watched while it is made, read, deleted."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse

from pipeline.entrypoints.gateway import calls, events, problems, shapes
from pipeline.entrypoints.gateway.calls import (
    MOST_ORDINAL,
    Caller,
    Counters,
    Cursor,
    Deployment,
    IdempotencyKey,
    Limit,
    Services,
)
from pipeline.errors import Invalid
from pipeline.services.idempotency import Answer
from pipeline.stages.window import WINDOW_BLOCKS
from renderers import markdown

router = APIRouter(route_class=calls.TenantRoute, tags=["sources"], dependencies=[calls.BEARER])

SourceId = Annotated[uuid.UUID, Depends(calls.named_id("source"))]
ReceiptId = Annotated[uuid.UUID, Depends(calls.named_id("deletion"))]

_ADD = "POST /v1/sources"
_FOUND = problems.documented("unauthenticated", "not_found", "invalid", "unavailable")


class NewSourceShape(BaseModel):
    """A stored file to add to the knowledge base."""

    model_config = ConfigDict(extra="forbid", title="NewSource")

    file_id: uuid.UUID


@router.post(
    "/v1/sources",
    status_code=202,
    response_model=shapes.SourceShape,
    responses=problems.documented(
        "unauthenticated", "not_found", "conflict", "too_large", "unsupported_type", "invalid", "unavailable"
    ),
)
def add_source(
    new: NewSourceShape, caller: Caller, services: Services, counters: Counters, key: IdempotencyKey = None
) -> JSONResponse:
    """Add a stored file to the knowledge base."""
    # Before a remembered answer is given out: who lost the file since does not get it.
    services.files.get(caller, new.file_id)

    def work() -> Answer:
        source = services.reading.source(caller, services.files.add_source(caller, new.file_id))
        counters.ingestions.labels("file").inc()
        return Answer(202, shapes.source_shape(source).model_dump(mode="json"))

    answer = services.idempotency.once(caller, _ADD, key, calls.fingerprint(new), work)
    return JSONResponse(answer.body, answer.status)


@router.get(
    "/v1/sources",
    response_model=shapes.Listing[shapes.SourceShape],
    responses=problems.documented("unauthenticated", "invalid", "unavailable"),
)
def list_sources(caller: Caller, services: Services, limit: Limit = calls.DEFAULT_ITEMS, cursor: Cursor = None) -> Any:
    """Sources the caller may see, newest first."""
    page = services.reading.sources(caller, limit, cursor)
    return shapes.Listing(items=[shapes.source_shape(source) for source in page.items], next_cursor=page.next_cursor)


@router.get("/v1/sources/{id}", response_model=shapes.SourceShape, responses=_FOUND)
def get_source(caller: Caller, services: Services, source_id: SourceId) -> Any:
    """One source with its newest attempt, stage and progress."""
    return shapes.source_shape(services.reading.source(caller, source_id))


@router.delete("/v1/sources/{id}", status_code=202, response_model=shapes.DeletionShape, responses=_FOUND)
def delete_source(
    caller: Caller,
    services: Services,
    counters: Counters,
    source_id: SourceId,
    with_file: Annotated[bool, Query(description="Also delete files that no other source needs.")] = False,
) -> Any:
    """Hide a source at once and delete it soon; its file stays unless asked."""
    receipt_id = services.deletions.delete_source(caller, source_id, with_file=with_file)
    counters.deletions.labels("source").inc()
    return shapes.DeletionShape(receipt_id=receipt_id)


@router.get(
    "/v1/sources/{id}/events",
    response_class=StreamingResponse,
    responses={**_FOUND, 200: {"description": "Events stage, progress and done.", "content": {events.MEDIA_TYPE: {}}}},
)
async def source_events(request: Request, caller: Caller, services: Services, source_id: SourceId) -> StreamingResponse:
    """Server-sent events of a source's newest attempt: ``stage``, ``progress``, and ``done`` with the source."""
    first = await run_in_threadpool(services.reading.source, caller, source_id)
    watch = events.Watch(services.reading, caller, source_id, request.app.state.event_polls)
    return StreamingResponse(watch.stream(first), media_type=events.MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})


@router.get("/v1/sources/{id}/document", response_model=shapes.DocumentShape, responses=_FOUND)
def read_document(
    caller: Caller,
    services: Services,
    source_id: SourceId,
    from_block: Annotated[int, Query(ge=0, le=MOST_ORDINAL, description="The block to begin at, from 0.")] = 0,
    limit: Annotated[int, Query(ge=1, le=WINDOW_BLOCKS, description="Blocks of one window.")] = WINDOW_BLOCKS,
) -> Any:
    """A window of the document: blocks and their Markdown, 24,000 characters but at least one block."""
    window = services.reading.document(caller, source_id, from_block, limit)
    return shapes.DocumentShape(
        blocks=list(window.blocks),
        markdown=markdown.render(window.blocks),
        next_block=window.next_block,
        low_confidence=window.low_confidence,
        warnings=list(window.warnings),
        reason=window.reason,
        retryable=window.retryable,
    )


@router.get("/v1/sources/{id}/pages", response_model=shapes.Listing[shapes.PageShape], responses=_FOUND)
def list_pages(
    caller: Caller,
    services: Services,
    source_id: SourceId,
    limit: Limit = calls.MOST_ITEMS,
    cursor: Cursor = None,
) -> Any:
    """The page quality map, in order of pages."""
    first = _ordinal(cursor)
    pages = [page for page in services.reading.pages(caller, source_id) if page.page > first]
    more = str(pages[limit - 1].page) if len(pages) > limit else None
    return shapes.Listing(items=[shapes.page_shape(page) for page in pages[:limit]], next_cursor=more)


@router.get("/v1/sources/{id}/chunks", response_model=shapes.Listing[shapes.ChunkShape], responses=_FOUND)
def list_chunks(
    caller: Caller,
    services: Services,
    settings: Deployment,
    source_id: SourceId,
    limit: Limit = calls.DEFAULT_ITEMS,
    cursor: Cursor = None,
) -> Any:
    """The published chunks, in order."""
    chunks, following = services.reading.chunks(caller, source_id, _ordinal(cursor), limit)
    return shapes.Listing(
        items=[shapes.chunk_shape(source_id, chunk, settings.low_confidence_threshold) for chunk in chunks],
        next_cursor=None if following is None else str(following),
    )


@router.get("/v1/deletions/{id}", tags=["deletions"], response_model=shapes.ReceiptShape, responses=_FOUND)
def get_receipt(caller: Caller, services: Services, receipt_id: ReceiptId) -> Any:
    """What a deletion found and left in each store."""
    return shapes.receipt_shape(services.deletions.receipt(caller, receipt_id))


def _ordinal(cursor: str | None) -> int:
    """The place a page of an ordered list ended at."""
    if cursor is None:
        return 0
    longest = len(str(MOST_ORDINAL))
    if cursor.isascii() and cursor.isdecimal() and len(cursor) <= longest and int(cursor) <= MOST_ORDINAL:
        return int(cursor)
    raise Invalid("cursor is not one this list gave out")
