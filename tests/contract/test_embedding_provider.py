"""What every EmbeddingProvider promises: in memory, on this CPU, and behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from pipeline.engines.embedding.local import LocalEmbedding
from pipeline.engines.embedding.openai import OpenAIEmbedding, OpenAISettings
from pipeline.ports import EmbeddingProvider
from pipeline.testing.embedding import HashedWords
from tests.contract import embedding_server

PASSAGES = [
    "Revenue in the northern region rose by nine percent in the third quarter.",
    "The pump must be switched off before the filter is changed.",
    "ERR-4021 means that the sensor cable is not connected.",
]


@pytest.fixture(scope="module")
def local() -> LocalEmbedding:
    return LocalEmbedding()


@pytest.fixture(params=["memory", "local", "openai"])
def provider(request: pytest.FixtureRequest, local: LocalEmbedding) -> Iterator[EmbeddingProvider]:
    if request.param == "memory":
        yield HashedWords()
    elif request.param == "local":
        yield local
    else:
        with embedding_server.serve(HashedWords(64)) as server:
            hosted = OpenAIEmbedding(
                OpenAISettings(SecretStr(embedding_server.KEY), server.url, "hashed-words", 64, 0.55, batch=2)
            )
            yield hosted
            hosted.close()


def similarity(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def test_the_model_says_what_its_vectors_are(provider: EmbeddingProvider) -> None:
    provider.check()
    model = provider.model()
    assert model == provider.model()
    assert model.provider
    assert model.model
    assert model.version
    assert model.dimensions == len(provider.embed(["text"])[0])
    assert model.window >= 256
    assert 0 < model.absolute_floor < 1


def test_one_unit_vector_for_each_text_in_order(provider: EmbeddingProvider) -> None:
    vectors = provider.embed([*PASSAGES, *reversed(PASSAGES)])
    assert len(vectors) == 6
    assert vectors[:3] == tuple(reversed(vectors[3:]))
    for vector in vectors:
        assert math.hypot(*vector) == pytest.approx(1, abs=1e-6)
    assert provider.embed([]) == ()


def test_a_vector_does_not_depend_on_its_neighbours(provider: EmbeddingProvider) -> None:
    together = provider.embed([PASSAGES[0], "short", "word " * 250])
    assert together[0] == provider.embed([PASSAGES[0]])[0]


def test_text_with_shared_words_is_nearer_than_other_text(provider: EmbeddingProvider) -> None:
    question, *answers = provider.embed(["how to change the filter of the pump", *PASSAGES])
    similarities = [similarity(question, answer) for answer in answers]
    assert max(similarities) == similarities[1]


def test_text_beyond_the_window_is_embedded_by_its_first_window(provider: EmbeddingProvider) -> None:
    window = provider.model().window
    long = " ".join(["pump filter"] * window * 4)
    [vector] = provider.embed([long])
    assert math.hypot(*vector) == pytest.approx(1, abs=1e-6)


def test_a_blank_text_is_refused(provider: EmbeddingProvider) -> None:
    for blank in ("", " \n"):
        with pytest.raises(ValueError, match="cannot be embedded"):
            provider.embed(["fine", blank])


def test_tokens_are_counted_without_truncation(provider: EmbeddingProvider) -> None:
    short, long, nothing = provider.count_tokens(["one word", "word " * 5_000, ""])
    assert 0 < short < 10
    assert long >= 5_000
    assert nothing == 0


def test_any_characters_are_embedded(provider: EmbeddingProvider) -> None:
    vectors = provider.embed(["水道のポンプ", "!?", "\u0301", "🛠", "x" * 5_000])
    assert len(vectors) == 5
