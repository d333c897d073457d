"""``/v1/files``: uploads, the list, deletion."""

from __future__ import annotations

import functools
import uuid
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TypeVar

import anyio.to_thread
from fastapi import APIRouter, Depends
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse

from pipeline.bootstrap import GatewayServices
from pipeline.entrypoints.gateway import calls, problems, shapes, uploads
from pipeline.entrypoints.gateway.calls import Caller, Counters, Cursor, Deployment, IdempotencyKey, Limit, Services
from pipeline.entrypoints.gateway.metrics import Metrics
from pipeline.errors import Invalid
from pipeline.services.files import UploadRequest
from pipeline.services.idempotency import Answer
from pipeline.types import IngestMode, Principal, Priority

router = APIRouter(route_class=calls.TenantRoute, tags=["files"], dependencies=[calls.BEARER])

FileId = Annotated[uuid.UUID, Depends(calls.named_id("file"))]
Choice = TypeVar("Choice", bound=StrEnum)

_UPLOAD = "POST /v1/files"
# Uploads that may wait for the object store at once: while it stalls, every other call keeps its threads.
STORING_AT_ONCE = 8
_FORM: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": {"type": "string", "format": "binary", "description": "The file, at most MAX_BYTES."},
                        "subject": {"type": "string", "description": "Whom it belongs to; left out: private."},
                        "ingest": {"type": "string", "enum": list(IngestMode), "default": IngestMode.INDEX},
                        "priority": {"type": "string", "enum": list(Priority), "default": Priority.INTERACTIVE},
                    },
                }
            }
        },
    }
}


@router.post(
    "/v1/files",
    status_code=201,
    response_model=shapes.UploadShape,
    responses=problems.documented(
        "unauthenticated", "not_found", "conflict", "too_large", "unsupported_type", "invalid", "unavailable"
    ),
    openapi_extra=_FORM,
)
async def upload(
    request: Request,
    caller: Caller,
    services: Services,
    settings: Deployment,
    counters: Counters,
    key: IdempotencyKey = None,
) -> JSONResponse:
    """Store a file and, unless told otherwise, start a source for it."""
    received = await uploads.receive(
        request, settings.max_bytes, services.files.check_type, await run_in_threadpool(_spool, settings.work_dir)
    )
    with received.content.stream:
        asked = UploadRequest(
            filename=received.filename,
            media_type=received.media_type,
            subject=received.fields.get("subject") or None,
            ingest=_choice(IngestMode, received.fields.get("ingest"), IngestMode.INDEX, "ingest"),
            priority=_choice(Priority, received.fields.get("priority"), Priority.INTERACTIVE, "priority"),
        )
        store = functools.partial(_store, services, counters, caller, asked, received, key)
        answer = await anyio.to_thread.run_sync(store, limiter=request.app.state.store_threads)
    return JSONResponse(answer.body, answer.status)


@router.get(
    "/v1/files",
    response_model=shapes.Listing[shapes.FileShape],
    responses=problems.documented("unauthenticated", "invalid", "unavailable"),
)
def list_files(caller: Caller, services: Services, limit: Limit = calls.DEFAULT_ITEMS, cursor: Cursor = None) -> Any:
    """Files the caller may see, newest first."""
    page = services.files.page(caller, limit, cursor)
    return shapes.Listing(items=[shapes.file_shape(file) for file in page.items], next_cursor=page.next_cursor)


@router.get(
    "/v1/files/{id}",
    response_model=shapes.FileShape,
    responses=problems.documented("unauthenticated", "not_found", "unavailable"),
)
def get_file(caller: Caller, services: Services, file_id: FileId) -> Any:
    """One file."""
    return shapes.file_shape(services.files.get(caller, file_id))


@router.delete(
    "/v1/files/{id}",
    status_code=202,
    response_model=shapes.DeletionShape,
    responses=problems.documented("unauthenticated", "not_found", "unavailable"),
)
def delete_file(caller: Caller, services: Services, counters: Counters, file_id: FileId) -> Any:
    """Hide a file, and every source no other file is linked to, at once; delete them soon."""
    receipt_id = services.deletions.delete_file(caller, file_id)
    counters.deletions.labels("file").inc()
    return shapes.DeletionShape(receipt_id=receipt_id)


def _store(
    services: GatewayServices,
    counters: Metrics,
    caller: Principal,
    asked: UploadRequest,
    received: uploads.Received,
    key: str | None,
) -> Answer:
    # Before a remembered answer is given out: who lost the subject since does not get it.
    services.files.check(caller, asked, received.content.byte_size)

    def work() -> Answer:
        stored = services.files.upload(caller, asked, received.content)
        shape = shapes.UploadShape(
            **shapes.file_shape(stored.file).model_dump(),
            source_id=stored.source_id,
            duplicate_of=stored.duplicate_of,
        )
        counters.files.labels(asked.ingest, asked.priority).inc()
        counters.file_bytes.inc(received.content.byte_size)
        if stored.source_id is not None:
            counters.ingestions.labels("upload").inc()
        return Answer(201, shape.model_dump(mode="json"))

    said = {**received.fields, "filename": received.filename, "media_type": received.media_type}
    body = calls.fingerprint({**said, "sha256": received.content.sha256})
    return services.idempotency.once(caller, _UPLOAD, key, body, work)


def _choice(kind: type[Choice], said: str | None, default: Choice, name: str) -> Choice:
    if not said:
        return default
    try:
        return kind(said)
    except ValueError:
        raise Invalid(f"{name} is one of {', '.join(kind)}") from None


def _spool(work_dir: Path | None) -> Path | None:
    """Where large uploads lie while they arrive; the system's temporary directory when none is configured."""
    if work_dir is None:
        return None
    directory = work_dir / "uploads"
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory
