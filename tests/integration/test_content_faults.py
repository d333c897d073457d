"""T15: what S3 does wrong is noticed, named and never passed on as content."""

from __future__ import annotations

import http.client
import io
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline.entrypoints.embedded.services import EmbeddedServices
from pipeline.errors import ConfigurationError, TransientError
from storage import content
from storage.content import S3ContentStore

HEADERS = 'HTTP/1.1 {status}\r\nContent-Length: {length}\r\nContent-Type: {kind}\r\nETag: "x"\r\n{more}\r\n'
SLOW_DOWN = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>secret detail</Message></Error>"


def answer(
    body: bytes, *, status: str = "200 OK", length: int | None = None, kind: str = "text/plain", more: str = ""
) -> bytes:
    shown = len(body) if length is None else length
    return HEADERS.format(status=status, length=shown, kind=kind, more=more).encode() + body


class BrokenStore:
    """Answers every request with the same bytes, then closes; None never answers."""

    def __init__(self, reply: bytes | None) -> None:
        self.requests = 0
        self._reply = reply
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    @property
    def store(self) -> S3ContentStore:
        return S3ContentStore(f"127.0.0.1:{self._listener.getsockname()[1]}", "key", "secret", "bucket", secure=False)

    def stop(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for connection in self._open:
            connection.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.requests += 1
            connection.recv(65536)
            if self._reply is None:
                self._open.append(connection)
                continue
            connection.sendall(self._reply)
            connection.close()


@pytest.fixture
def broken() -> Iterator[Callable[[bytes | None], BrokenStore]]:
    started: list[BrokenStore] = []

    def start(reply: bytes | None) -> BrokenStore:
        started.append(BrokenStore(reply))
        return started[-1]

    yield start
    for server in started:
        server.stop()


Broken = Callable[[bytes | None], BrokenStore]

TRUNCATED = {
    "cut": answer(b"half", length=8),
    "cut and agreed on": answer(b"half", more="x-amz-meta-byte-size: 8\r\n"),
    "cut chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n8\r\nma",
}


@pytest.mark.parametrize("reply", TRUNCATED.values(), ids=TRUNCATED.keys())
def test_a_truncated_object_never_passes(broken: Broken, tmp_path: Path, reply: bytes) -> None:
    store = broken(reply).store
    with pytest.raises(TransientError) as noticed:
        list(store.read("key"))
    assert noticed.value.dependency == "s3"
    with pytest.raises(TransientError):
        store.fetch("key", tmp_path / "target")
    assert list(tmp_path.iterdir()) == []


def test_a_range_is_measured_against_the_whole(broken: Broken) -> None:
    reply = answer(b"56", status="206 Partial Content", more="x-amz-meta-byte-size: 10\r\n")
    store = broken(reply).store
    assert list(store.read("key", 5, 2)) == [b"56"]
    with pytest.raises(TransientError, match="ended after 2 of 3 bytes"):
        list(store.read("key", 5, 3))


def test_a_busy_store_is_trouble_that_passes(broken: Broken) -> None:
    server = broken(answer(SLOW_DOWN, status="503 Slow Down", kind="application/xml"))
    with pytest.raises(TransientError, match="SlowDown") as busy:
        server.store.put("key", io.BytesIO(b"x"), 1, "text/plain")
    assert "secret detail" not in str(busy.value)
    assert server.requests == 1
    for call in (
        lambda: server.store.stat("key"),
        lambda: list(server.store.keys("")),
        lambda: server.store.delete("key"),
    ):
        with pytest.raises(TransientError):
            call()


def test_an_answer_that_is_no_s3_is_trouble_too(broken: Broken) -> None:
    with pytest.raises(TransientError):
        broken(answer(b"<html>gateway timeout</html>", status="504 Gateway Timeout", kind="text/html")).store.read(
            "key"
        )
    with pytest.raises(TransientError):
        list(broken(answer(b"<ListBucketResult><Con", kind="application/xml")).store.keys(""))


def test_a_lost_reply_to_put_is_trouble_that_passes(broken: Broken) -> None:
    server = broken(b"")
    with pytest.raises(TransientError):
        server.store.put("key", io.BytesIO(b"x"), 1, "text/plain")
    assert 1 <= server.requests <= 2


def test_a_store_that_stalls_is_given_up(broken: Broken, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content, "_READ_TIMEOUT_S", 0.3)
    began = time.monotonic()
    with pytest.raises(TransientError):
        broken(None).store.read("key")
    assert time.monotonic() - began < 5


def test_a_store_that_is_not_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    store = S3ContentStore(f"127.0.0.1:{port}", "key", "secret", "bucket", secure=False)
    with pytest.raises(TransientError, match="s3: the store could not read an object"):
        store.read("key")


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9000", "127.0.0.1:9000/path"])
def test_an_endpoint_is_a_host_and_a_port(endpoint: str) -> None:
    with pytest.raises(ConfigurationError, match="DOCMILL_S3_ENDPOINT expects HOST:PORT"):
        S3ContentStore(endpoint, "key", "secret", "bucket")


def test_a_wrong_secret_is_refused(services: EmbeddedServices) -> None:
    stranger = S3ContentStore(services.s3.endpoint, services.s3.access_key, "wrong", "docmill", secure=False)
    with pytest.raises(TransientError, match="SignatureDoesNotMatch"):
        list(stranger.keys(""))


def test_the_servers_behind_s3_want_a_signature(services: EmbeddedServices, content_store: S3ContentStore) -> None:
    """Filer and volume server speak HTTP on ports of their own; nobody reads documents there."""
    content_store.put("behind/object", io.BytesIO(b"document"), 8, "text/plain")
    for server, path in (("filer", "/buckets/docmill/behind/object"), ("volume", "/1,01aaaaaaaa")):
        connection = http.client.HTTPConnection("127.0.0.1", services.s3.ports[server], timeout=5)
        connection.request("GET", path)
        assert connection.getresponse().status == http.HTTPStatus.UNAUTHORIZED
        connection.close()
