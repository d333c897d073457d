"""Uploads that are hostile, over real connections: refused early, with bounded memory, and nothing is kept."""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from pipeline.errors import TransientError
from storage.content import S3ContentStore
from tests.integration.gateway.conftest import MAX_BYTES, Caller, Gateway
from tests.integration.server import serving

BOUNDARY = "x1y2z3"
FORM = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
ENDLESS = 64 * 1024**2


@pytest.fixture(scope="module")
def address(gateway: Gateway) -> Iterator[tuple[str, int]]:
    """The same gateway behind a real server."""
    with serving(gateway.app) as found:
        yield found


def _part(name: str, content: bytes, extra: str = "", filename: str | None = None) -> bytes:
    named = f'; filename="{filename}"' if filename is not None else ""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"{named}\r\n{extra}\r\n'
    return head.encode() + content + b"\r\n"


def _file(content: bytes = b"text", extra: str = "Content-Type: text/plain\r\n") -> bytes:
    return _part("file", content, extra, "a.txt")


END = f"--{BOUNDARY}--\r\n".encode()

MALFORMED = {
    "no form": b"hello",
    "empty": b"",
    "no file": _part("subject", b"user:ana") + END,
    "ends early": _file(),
    "ends inside a header": b"--" + BOUNDARY.encode() + b"\r\nContent-Dispo",
    "text before the form": b"text\r\n" * 100 + _file() + END,
    "padding before the form": b"\r\n" * 150_000 + _file() + END,
    "padding after the form": _file() + END + b"\r\n" * 150_000,
    "a million fields": _part("subject", b"") * 3_000 + _file() + END,
    "many different fields": b"".join(_part(f"f{n}", b"x") for n in range(50)) + _file() + END,
    "twice the same field": _part("subject", b"a") + _part("subject", b"b") + _file() + END,
    "two files": _file() + _file() + END,
    "a long field": _part("subject", b"x" * 2_000) + _file() + END,
    "a field that is not UTF-8": _part("subject", b"\xff") + _file() + END,
    "many headers": _part("file", b"x", "A: b\r\n" * 20, "a.txt") + END,
    "a long header": _part("file", b"x", f"A: {'b' * 9_000}\r\n", "a.txt") + END,
    "a header without end": f"--{BOUNDARY}\r\nA".encode() + b"b" * 20_000,
    "a transfer encoding": _part("file", b"eA==", "Content-Transfer-Encoding: base64\r\n", "a.txt") + END,
    "a part without name": f"--{BOUNDARY}\r\nContent-Type: text/plain\r\n\r\nx\r\n".encode() + END,
    "NUL in a header": _part("file", b"x", "A\x00: b\r\n", "a.txt") + END,
}


@pytest.mark.parametrize("body", MALFORMED.values(), ids=MALFORMED.keys())
@pytest.mark.parametrize("piece", [1_000_000, 37])
def test_malformed_forms_are_refused(
    ana: Caller, content_store: S3ContentStore, address: tuple[str, int], body: bytes, piece: int
) -> None:
    pieces = [body[at : at + piece] for at in range(0, len(body), piece)][:8_000]
    answer = httpx.post(_url(address), headers={**ana.headers, **FORM}, content=iter(pieces))
    # Padding is bounded by its own limit when it trickles in, by that of the whole form when it comes at once.
    padded = b"\r\n" * 1_000 in body
    expected = {(422, "invalid"), (413, "too_large")} if padded else {(422, "invalid")}
    assert (answer.status_code, answer.json()["code"]) in expected
    assert list(content_store.keys(f"{ana.tenant_id}/")) == []
    assert ana.get("/v1/files").json()["items"] == []


def test_the_same_helpers_make_a_form_that_is_taken(ana: Caller, address: tuple[str, int]) -> None:
    body = b"\r\n" + _part("priority", b"bulk") + _file(b"\r\n--x1y2\r\n-" * 9) + END
    for piece in (1, 7, 10_000):
        pieces = (body[at : at + piece] for at in range(0, len(body), piece))
        answer = httpx.post(_url(address), headers={**ana.headers, **FORM}, content=pieces)
        assert (answer.status_code, answer.json()["byte_size"]) == (201, 99)


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "text/plain",
        "multipart/form-data",
        "multipart/mixed; boundary=x",
        f"multipart/form-data; boundary={'x' * 200}",
        "",
    ],
)
def test_what_is_no_form_is_refused(ana: Caller, content_type: str) -> None:
    answer = ana.post("/v1/files", content=b"{}", headers={"Content-Type": content_type})
    assert (answer.status_code, answer.json()["code"]) in ((415, "unsupported_type"), (422, "invalid"))


def _url(address: tuple[str, int]) -> str:
    return f"http://{address[0]}:{address[1]}/v1/files"


def _raw(
    address: tuple[str, int], caller: Caller, headers: dict[str, str], pieces: Iterator[bytes]
) -> tuple[bytes, int]:
    """Send until the server answers or closes; the answer and how many body bytes went out."""
    lines = [f"{name}: {value}" for name, value in {"Host": "x", **caller.headers, **FORM, **headers}.items()]
    sent = 0
    with socket.create_connection(address, timeout=20) as connection:
        connection.sendall(("POST /v1/files HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n").encode())
        try:
            for piece in pieces:
                connection.sendall(b"%x\r\n%s\r\n" % (len(piece), piece) if "Transfer-Encoding" in headers else piece)
                sent += len(piece)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = b""
        try:
            while received := connection.recv(65_536):
                answer += received
        except ConnectionResetError:
            pass
        return answer, sent


def _endless(piece: bytes, total: int = ENDLESS) -> Iterator[bytes]:
    for _ in range(total // len(piece)):
        yield piece


def test_a_declared_size_is_refused_before_the_body_is_read(ana: Caller, address: tuple[str, int]) -> None:
    answer, _ = _raw(address, ana, {"Content-Length": str(10**12)}, iter(()))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b'"too_large"' in answer


@pytest.mark.parametrize(
    "start",
    [_part("file", b"", "Content-Type: text/plain\r\n", "a.txt")[:-2], b"\r\n", _file() + END],
    ids=["file", "preamble", "epilogue"],
)
def test_the_producer_of_an_endless_upload_is_stopped(
    ana: Caller, address: tuple[str, int], content_store: S3ContentStore, work_dir: Path, start: bytes
) -> None:
    before = psutil.Process().memory_info().rss

    def pieces() -> Iterator[bytes]:
        yield start
        yield from _endless(b"\r\n" * 32_768)

    answer, sent = _raw(address, ana, {"Transfer-Encoding": "chunked"}, pieces())
    assert answer[:13] in (b"HTTP/1.1 413 ", b"HTTP/1.1 422 ", b"")
    # What the sockets' buffers took, not what there was to send.
    assert sent < ENDLESS // 4
    assert psutil.Process().memory_info().rss - before < 32 * 1024**2
    assert list(content_store.keys(f"{ana.tenant_id}/")) == []
    assert list((work_dir / "uploads").iterdir()) == []


def test_a_client_that_leaves_leaves_nothing(
    gateway: Gateway, ana: Caller, address: tuple[str, int], content_store: S3ContentStore, work_dir: Path
) -> None:
    open_before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 (a count of descriptors)
    with socket.create_connection(address) as connection:
        head = {"Host": "x", **ana.headers, **FORM, "Content-Length": "150000"}
        lines = "\r\n".join(f"{name}: {value}" for name, value in head.items())
        connection.sendall(f"POST /v1/files HTTP/1.1\r\n{lines}\r\n\r\n".encode() + _file(b"x" * 60_000))
    deadline = time.monotonic() + 10
    while len(os.listdir("/proc/self/fd")) > open_before and time.monotonic() < deadline:  # noqa: PTH208
        time.sleep(0.02)
    assert list(content_store.keys(f"{ana.tenant_id}/")) == []
    assert list((work_dir / "uploads").iterdir()) == []
    assert 'status="499"' in gateway.client.get("/metrics").text


@pytest.mark.parametrize("path", ["/v1/files", "/v1/search"])
def test_a_body_that_stops_arriving_is_given_up(
    ana: Caller, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    monkeypatch.setattr("pipeline.entrypoints.gateway.uploads._IDLE_S", 0.3)
    monkeypatch.setattr("pipeline.entrypoints.gateway.calls._JSON_S", 0.3)
    kind = FORM if path == "/v1/files" else {"Content-Type": "application/json"}
    lines = [f"{name}: {value}" for name, value in {"Host": "x", **ana.headers, **kind, "Content-Length": "99"}.items()]
    with socket.create_connection(address, timeout=10) as connection:
        connection.sendall((f"POST {path} HTTP/1.1\r\n" + "\r\n".join(lines) + "\r\n\r\n--x").encode())
        assert connection.recv(65_536).startswith(b"HTTP/1.1 422 ")


def test_a_body_that_trickles_is_given_up(
    ana: Caller, address: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.entrypoints.gateway.uploads._IDLE_S", 0.5)

    def trickle() -> Iterator[bytes]:
        yield _part("file", b"", "Content-Type: text/plain\r\n", "a.txt")[:-2]
        for _ in range(100):
            time.sleep(0.05)
            yield b"x"

    answer, sent = _raw(address, ana, {"Transfer-Encoding": "chunked"}, trickle())
    assert answer.startswith(b"HTTP/1.1 422 ")
    assert sent < 200


def test_a_store_that_is_away_is_unavailable_and_hides_the_file(
    gateway: Gateway, ana: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: Any) -> None:
        raise TransientError("s3", "no answer", retry_after_s=7)

    monkeypatch.setattr(gateway.app.state.services.files._content, "put", away)
    answer = ana.upload()
    assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (503, "unavailable", "7")
    assert ana.get("/v1/files").json()["items"] == []


def test_a_full_disk_is_unavailable(ana: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __init__(self, **_: Any) -> None: ...

        def write(self, _: bytes) -> int:
            raise OSError(28, "No space left on device")

        def close(self) -> None: ...

    monkeypatch.setattr("pipeline.entrypoints.gateway.uploads.tempfile.SpooledTemporaryFile", Full)
    answer = ana.upload()
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")


def test_an_upload_at_the_limit_is_taken_whole(ana: Caller, address: tuple[str, int]) -> None:
    body = uuid.uuid4().bytes * (MAX_BYTES // 16)
    answer = httpx.post(_url(address), headers=ana.headers, files={"file": ("a.txt", body, "text/plain")})
    assert (answer.status_code, answer.json()["byte_size"]) == (201, MAX_BYTES)
