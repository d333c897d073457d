"""An HTTP server that speaks OpenAI's embeddings call, backed by any EmbeddingProvider; it misbehaves on request."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pipeline.ports import EmbeddingProvider

KEY = "test-key"


@dataclass
class Reply:
    """One prepared answer instead of a good one."""

    status: int
    body: bytes = b'{"error": {"message": "no", "type": "x", "code": "x"}}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class EmbeddingServer:
    """``prepared`` answers come first, one a request; ``alter`` changes the good answers; ``seen`` are the bodies."""

    backing: EmbeddingProvider
    prepared: list[Reply] = field(default_factory=list)
    alter: Callable[[dict[str, Any]], Any] = lambda answer: answer
    seen: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def answer(self, key: str | None, path: str, body: dict[str, Any]) -> Reply:
        self.seen.append(body)
        if self.prepared:
            return self.prepared.pop(0)
        if path != "/v1/embeddings":
            return Reply(404)
        if key != f"Bearer {KEY}":
            return Reply(401)
        texts = body["input"]
        vectors = self.backing.embed(texts)
        tokens = sum(self.backing.count_tokens(texts))
        data = [{"object": "embedding", "index": i, "embedding": list(vector)} for i, vector in enumerate(vectors)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        good = {"object": "list", "data": data, "model": body["model"], "usage": usage}
        return Reply(200, json.dumps(self.alter(good)).encode())


@contextmanager
def serve(backing: EmbeddingProvider) -> Iterator[EmbeddingServer]:
    """The server on a free loopback port, until the block ends."""
    state = EmbeddingServer(backing)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            reply = state.answer(self.headers["authorization"], self.path, body)
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the signature is the library's
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
