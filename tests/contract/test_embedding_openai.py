"""How an OpenAI-compatible endpoint's troubles come out of the adapter; a real server on loopback answers."""

from __future__ import annotations

import email.utils
import json
import logging
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic import SecretStr

from pipeline.engines.embedding.openai import OpenAIEmbedding, OpenAISettings
from pipeline.errors import ConfigurationError, TransientError
from pipeline.testing.embedding import HashedWords
from tests.contract.embedding_server import KEY, EmbeddingServer, Reply, serve

SECRET_TEXT = "the confidential passage"


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with serve(HashedWords(16)) as running:
        yield running


@pytest.fixture
def connect(server: EmbeddingServer) -> Iterator[Callable[..., OpenAIEmbedding]]:
    made: list[OpenAIEmbedding] = []

    def connected(
        *, key: str = KEY, url: str | None = None, model: str = "m", dimensions: int = 16, batch: int = 4
    ) -> OpenAIEmbedding:
        settings = OpenAISettings(SecretStr(key), url or server.url, model, dimensions, 0.5, batch)
        made.append(OpenAIEmbedding(settings))
        return made[-1]

    yield connected
    for embedder in made:
        embedder.close()


Connect = Callable[..., OpenAIEmbedding]


def test_texts_go_in_batches(server: EmbeddingServer, connect: Connect) -> None:
    texts = [f"text {n}" for n in range(10)]
    for given, expected in zip(connect(batch=4).embed(texts), HashedWords(16).embed(texts), strict=True):
        assert given == pytest.approx(expected)
    assert [len(body["input"]) for body in server.seen] == [4, 4, 2]
    assert {body["encoding_format"] for body in server.seen} == {"float"}


def test_a_request_stays_within_the_endpoints_tokens(server: EmbeddingServer, connect: Connect) -> None:
    connect(batch=2048).embed(["水" * 60_000] * 40)
    assert [len(body["input"]) for body in server.seen] == [18, 18, 4]
    assert {len(text) for body in server.seen for text in body["input"]} == {8_191}


def test_the_size_is_asked_for_only_where_it_is_known(server: EmbeddingServer, connect: Connect) -> None:
    connect(model="text-embedding-3-small").embed(["a"])
    connect(model="other").embed(["a"])
    assert [body.get("dimensions") for body in server.seen] == [16, None]


def test_answers_are_taken_by_their_index(server: EmbeddingServer, connect: Connect) -> None:
    server.alter = lambda answer: {**answer, "data": answer["data"][::-1]}
    texts = ["one", "two", "three"]
    for given, expected in zip(connect().embed(texts), HashedWords(16).embed(texts), strict=True):
        assert given == pytest.approx(expected)


@pytest.mark.parametrize(
    ("reply", "waits"),
    [
        (Reply(429, headers={"retry-after": "7"}), 7.0),
        (Reply(429, headers={"retry-after-ms": "1500"}), 1.5),
        (Reply(503, headers={"retry-after": "99999"}), 600.0),
        (Reply(503, headers={"retry-after": "-5"}), 0.0),
        (Reply(429, headers={"retry-after": "soon"}), None),
        (Reply(429, headers={"retry-after": "nan"}), None),
        (Reply(500), None),
        (Reply(502, b"<html>bad gateway</html>", {"content-type": "text/html"}), None),
        (Reply(408), None),
    ],
)
def test_trouble_that_passes_is_transient_after_one_attempt(
    server: EmbeddingServer, connect: Connect, reply: Reply, waits: float | None
) -> None:
    server.prepared = [reply]
    with pytest.raises(TransientError, match=f"embedder.*{reply.status}") as caught:
        connect().embed([SECRET_TEXT])
    assert caught.value.dependency == "embedder"
    assert caught.value.retry_after_s == waits
    assert len(server.seen) == 1


def test_a_date_to_wait_for(server: EmbeddingServer, connect: Connect) -> None:
    server.prepared = [Reply(429, headers={"retry-after": email.utils.formatdate(time.time() + 30, usegmt=True)})]
    with pytest.raises(TransientError) as caught:
        connect().embed(["a"])
    assert caught.value.retry_after_s == pytest.approx(30, abs=3)


def test_an_endpoint_that_is_not_there_is_transient(connect: Connect) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(TransientError, match="cannot be reached"):
        connect(url=f"http://127.0.0.1:{port}/v1").embed(["a"])


def test_no_answer_in_time_is_transient(
    server: EmbeddingServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.engines.embedding.openai._TIMEOUT_S", 0.2)

    def late(answer: dict[str, Any]) -> dict[str, Any]:
        time.sleep(0.6)
        return answer

    server.alter = late
    with pytest.raises(TransientError, match=r"no answer within 0\.2 s"):
        connect().embed(["a"])


@pytest.mark.parametrize(
    ("status", "names"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "EMBEDDING_MODEL"), (400, "400")]
)
def test_trouble_that_stays_names_the_setting(
    server: EmbeddingServer, connect: Connect, status: int, names: str
) -> None:
    server.prepared = [Reply(status)]
    with pytest.raises(ConfigurationError, match=names):
        connect().embed(["a"])


def test_a_wrong_key_is_found_at_the_start(connect: Connect) -> None:
    connect().check()
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        connect(key="another").check()


def test_a_wrong_size_is_found_at_the_start_and_refused_later(connect: Connect) -> None:
    with pytest.raises(ConfigurationError, match="DOCMILL_EMBEDDING_DIMENSIONS is 8, but m gives vectors of 16"):
        connect(dimensions=8).check()
    with pytest.raises(ValueError, match="16 dimensions, not 8"):
        connect(dimensions=8).embed(["a"])


def _with_vector(vector: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda answer: {**answer, "data": [{**item, "embedding": vector} for item in answer["data"]]}


@pytest.mark.parametrize("vector", [[0.0] * 16, [float("nan")] * 16, [float("inf")] * 16, [1e308] * 16])
def test_a_vector_without_a_direction_is_refused(
    server: EmbeddingServer, connect: Connect, vector: list[float]
) -> None:
    server.alter = _with_vector(vector)
    with pytest.raises(ValueError, match="length"):
        connect().embed(["a"])


def test_vectors_of_any_length_are_scaled(server: EmbeddingServer, connect: Connect) -> None:
    server.alter = _with_vector([3.0, 4.0] + [0.0] * 14)
    assert connect().embed(["a"]) == ((0.6, 0.8, *[0.0] * 14),)


@pytest.mark.parametrize(
    "alter",
    [
        lambda answer: {**answer, "data": answer["data"][:1]},
        lambda answer: {**answer, "data": [{**item, "index": 0} for item in answer["data"]]},
        lambda answer: {**answer, "data": None},
        lambda _: {"ok": True},
        lambda _: [],
        _with_vector(None),
        _with_vector("AAAA"),
    ],
)
def test_an_answer_that_is_no_list_of_embeddings_is_transient(
    server: EmbeddingServer, connect: Connect, alter: Callable[[dict[str, Any]], Any]
) -> None:
    server.alter = alter
    with pytest.raises(TransientError, match="answer"):
        connect().embed(["a", "b"])


def test_a_page_instead_of_an_answer_is_transient(server: EmbeddingServer, connect: Connect) -> None:
    server.prepared = [Reply(200, b"<html>login</html>", {"content-type": "text/html"}), Reply(200, b"{broken")]
    for _ in range(2):
        with pytest.raises(TransientError, match="answer"):
            connect().embed(["a"])


def test_neither_text_nor_key_is_logged_or_told(
    server: EmbeddingServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    told = json.dumps({"error": {"message": f"bad input: {SECRET_TEXT} {KEY}"}}).encode()
    server.prepared = [Reply(400, told), Reply(500, told)]
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("openai").setLevel(logging.DEBUG)
        embedder = connect()
        embedder_errors = []
        for expected in (ConfigurationError, TransientError):
            with pytest.raises(expected) as caught:
                embedder.embed([SECRET_TEXT])
            embedder_errors.append(f"{caught.value!r} {caught.value.__cause__}")
        embedder.embed([SECRET_TEXT])
    for text in [*embedder_errors, caplog.text, repr(embedder), repr(embedder.model())]:
        assert SECRET_TEXT not in text
        assert KEY not in text
