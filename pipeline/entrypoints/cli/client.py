"""Calls of the gateway; its problem documents become one-line errors."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

import httpx

from pipeline.entrypoints.cli import connection, terminal
from pipeline.entrypoints.cli.outcome import CommandError, Exit

# Uploads wait for the store; everything else answers at once or not at all.
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)
_PAGE_ITEMS = 100


class Problem(CommandError):
    """What the gateway refused; ``kind`` is the problem's code."""

    def __init__(self, status: int, kind: str, detail: str) -> None:
        advice = {
            "unauthenticated": " Get a new token with: docmill token",
            "unavailable": " Try again shortly; docmill up restarts what ended.",
        }
        super().__init__(detail + advice.get(kind, ""), Exit.NOT_REACHABLE if kind == "unavailable" else Exit.ERROR)
        self.status = status
        self.kind = kind
        self.detail = detail


class Unreachable(CommandError):
    """The gateway did not answer."""

    def __init__(self, url: str, why: str) -> None:
        super().__init__(
            f"the gateway at {url} does not answer ({why}); start it with: docmill up, or check DOCMILL_URL",
            Exit.NOT_REACHABLE,
        )


class Gateway:
    """One gateway. Safe for several threads."""

    def __init__(self, where: connection.Connection, transport: httpx.BaseTransport | None = None) -> None:
        """``transport`` replaces the network. Raises CommandError for an address that is none."""
        self._url = where.url
        self._http = httpx.Client(
            base_url=_address(where.url),
            headers={"Authorization": f"Bearer {where.token}", "Accept": "application/json"},
            timeout=_TIMEOUT,
            transport=transport,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, **query: Any) -> Any:
        """The JSON answer. Raises Problem and Unreachable."""
        return self._call("GET", path, params=query)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._call("POST", path, json=body)

    def delete(self, path: str, **query: Any) -> Any:
        return self._call("DELETE", path, params=query)

    def upload(self, path: Path, media_type: str, fields: dict[str, str], key: uuid.UUID) -> Any:
        """Send a file as a stream; ``key`` makes a repetition harmless. Raises OSError for a file that is not read."""
        with path.open("rb") as content:
            return self._call(
                "POST",
                "/v1/files",
                files={"file": (terminal.sendable(path.name), content, media_type)},
                data=fields,
                headers={"Idempotency-Key": str(key)},
            )

    def items(self, path: str) -> Iterator[Any]:
        """Every item of a list, page after page."""
        cursor: str | None = None
        while True:
            page = self.get(path, limit=_PAGE_ITEMS, **({"cursor": cursor} if cursor else {}))
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def _call(self, method: str, path: str, **options: Any) -> Any:
        try:
            answer = self._http.request(method, path, **options)
        except httpx.TransportError as trouble:
            raise Unreachable(self._url, type(trouble).__name__) from trouble
        try:
            body = answer.json()
        except ValueError:
            raise CommandError(f"{self._url} answered {answer.status_code} and is no Docmill gateway") from None
        if answer.is_success:
            return body
        if not isinstance(body, dict):
            body = {}
        raise Problem(answer.status_code, str(body.get("code", "")), str(body.get("detail", answer.reason_phrase)))


def _address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise CommandError(f"{connection.URL} is malformed; it expects http://HOST:PORT", Exit.USAGE)
    return address


def source(name: str, rest: str = "") -> str:
    """The path of a source, whatever was typed as its id."""
    return f"/v1/sources/{quote(name, safe='', errors='replace')}{rest}"
