"""The outermost layer: every request is timed, counted and logged by its route's template, every answer hardened."""

from __future__ import annotations

import asyncio
import time
import traceback
from pathlib import PurePath

import structlog
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pipeline.entrypoints.gateway import problems
from pipeline.entrypoints.gateway.metrics import Metrics

log = structlog.get_logger()

_UNMATCHED = "unmatched"
_INTERNAL_ERROR = 500
# nginx's number for a client that left before it was answered; only ever seen in metrics and logs.
_CLIENT_LEFT = 499
_HARDENING = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
}
# An answer of the API is never a page: whatever a browser makes of it may load and run nothing.
_API_HARDENING = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
_DOCS = "/docs"
_DOCS_HARDENING = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
}
# A refused upload is answered, its producer is given a moment to read the answer, and the connection is closed:
# closing at once would reset it, and the answer could be lost on its way.
_LINGER_S = 1.0
_LINGER_BYTES = 1024 * 1024


class Edge:
    """Pure ASGI. Neither query strings nor headers nor bodies are ever logged."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        self._metrics.in_progress.inc()
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            exchange.status = _CLIENT_LEFT
        except Exception as error:  # noqa: BLE001 (the one broad handler: a bug becomes a 500 and a log event)
            await exchange.fail(error)
        finally:
            self._metrics.in_progress.dec()
            self._note(exchange)

    def _note(self, exchange: _Exchange) -> None:
        seconds = time.perf_counter() - exchange.began
        self._metrics.observe(exchange.method, exchange.route, exchange.status, seconds)
        log.info(
            "http.answered",
            method=exchange.method,
            route=exchange.route,
            status=exchange.status,
            ms=round(seconds * 1000, 1),
        )


class _Exchange:
    """One request and its answer."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope = scope
        self._receive = receive
        self._send = send
        self._started = False
        # Whether bytes of the request are still to come.
        self._open = any(name in (b"content-length", b"transfer-encoding") for name, _ in scope["headers"])
        self.began = time.perf_counter()
        self.status = _CLIENT_LEFT
        self.method: str = scope["method"]

    @property
    def route(self) -> str:
        route = self._scope.get("route")
        return str(getattr(route, "path", _UNMATCHED))

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.disconnect" or not message.get("more_body", False):
            self._open = False
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.update(_HARDENING)
            headers.update(_DOCS_HARDENING if self._scope["path"] == _DOCS else _API_HARDENING)
            if self._open:
                headers["Connection"] = "close"
        elif self._open and not message.get("more_body", False):
            await self._send({**message, "more_body": True})
            await self._linger()
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await self._send(message)

    async def _linger(self) -> None:
        """Let go of what is still arriving, for a moment."""
        received = 0
        try:
            async with asyncio.timeout(_LINGER_S):
                while self._open and received < _LINGER_BYTES:
                    received += len((await self.receive()).get("body", b""))
        except TimeoutError:
            return

    async def fail(self, error: Exception) -> None:
        """Log where it happened, without the error's own words: they may quote a document or a statement's values."""
        frames = traceback.extract_tb(error.__traceback__)
        log.error(
            "http.failed",
            method=self.method,
            route=self.route,
            error=type(error).__name__,
            cause=type(error.__cause__).__name__ if error.__cause__ is not None else None,
            where=[f"{PurePath(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames[-8:]],
        )
        self.status = _INTERNAL_ERROR
        if not self._started:
            answer = problems.response("unavailable", "The request failed; it was logged.", status=_INTERNAL_ERROR)
            await answer(self._scope, self.receive, self.send)
