"""What every call of ``/v1`` shares: who asks is known before a byte of the body is looked at, bodies are bounded."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, cast

from fastapi import Depends, Header, Path, Query
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message

from pipeline.bootstrap import GatewayServices
from pipeline.entrypoints.gateway.identity import TokenReader
from pipeline.entrypoints.gateway.metrics import Metrics
from pipeline.errors import Invalid, NotFound, TooLarge, UnsupportedType
from pipeline.settings import Settings
from pipeline.types import Principal

MOST_ITEMS = 100
DEFAULT_ITEMS = 50
# A JSON body holds a question and its filters, or an id.
_MOST_JSON_BYTES = 64 * 1024
_JSON_S = 20.0
# The largest number an ordinal can be.
MOST_ORDINAL = 2**31 - 1


class TenantRoute(APIRoute):
    """A route that authenticates, then bounds the JSON body, then does what any route does."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        takes_json = self.body_field is not None

        async def guarded(request: Request) -> Response:
            reader = cast(TokenReader, request.app.state.token_reader)
            request.state.principal = await run_in_threadpool(reader.principal, request.headers.get("authorization"))
            return await handle(await _bounded(request) if takes_json else request)

        return guarded


async def _bounded(request: Request) -> Request:
    """The same request with its whole body read. Raises UnsupportedType, TooLarge, and Invalid for a slow one."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise UnsupportedType("this call takes application/json")
    try:
        async with asyncio.timeout(_JSON_S):
            whole = await _whole(request)
    except TimeoutError as problem:
        raise Invalid(f"the body did not arrive within {_JSON_S:g} seconds") from problem

    async def receive() -> Message:
        return {"type": "http.request", "body": whole, "more_body": False}

    return Request(request.scope, receive)


async def _whole(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_JSON_BYTES:
            raise TooLarge(f"a JSON body may have {_MOST_JSON_BYTES} bytes")
    return bytes(body)


def _principal(request: Request) -> Principal:
    return cast(Principal, request.state.principal)


def _services(request: Request) -> GatewayServices:
    return cast(GatewayServices, request.app.state.services)


def _settings(request: Request) -> Settings:
    return cast(Settings, request.app.state.settings)


def _metrics(request: Request) -> Metrics:
    return cast(Metrics, request.app.state.metrics)


def named_id(what: str) -> Callable[[str], uuid.UUID]:
    """Reads the path's id. What is no UUID names nothing, so it is answered like an id that names nothing."""

    def read(name: str = Path(alias="id", description=f"Id of the {what}.")) -> uuid.UUID:
        try:
            return uuid.UUID(name)
        except ValueError:
            raise NotFound(f"no such {what}") from None

    return read


# Only documents the scheme; the route itself has checked the token by then.
BEARER = Depends(HTTPBearer(auto_error=False, bearerFormat="JWT", description="A signed token; see docmill token."))

Caller = Annotated[Principal, Depends(_principal)]
Services = Annotated[GatewayServices, Depends(_services)]
Deployment = Annotated[Settings, Depends(_settings)]
Counters = Annotated[Metrics, Depends(_metrics)]
Limit = Annotated[int, Query(ge=1, le=MOST_ITEMS, description="Items of one page.")]
Cursor = Annotated[str | None, Query(max_length=512, description="The next_cursor of the page before.")]
IdempotencyKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        min_length=1,
        max_length=255,
        pattern=r"^[\x21-\x7e]+$",
        description="The same key and body are carried out once and answered the same for 24 hours.",
    ),
]


def fingerprint(body: BaseModel | dict[str, Any]) -> str:
    """A sha256 hex digest of what a request says, whatever its spelling."""
    value = body.model_dump(mode="json") if isinstance(body, BaseModel) else body
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
