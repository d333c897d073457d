"""Embeddings from any endpoint that speaks OpenAI's embeddings call."""

from __future__ import annotations

import email.utils
import json
import logging
import math
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import openai
from openai.types import CreateEmbeddingResponse
from pydantic import SecretStr

from pipeline.engines.embedding import vectors
from pipeline.errors import ConfigurationError, TransientError
from pipeline.types import EmbeddingModel

# OpenAI's limits of its embedding models: tokens of one text, and of all texts of a request (300,000) with room for
# the error of the estimate below.
WINDOW = 8_191
_REQUEST_TOKENS = 150_000
# A batch of 32 chunks takes a second or two; whoever waits longer is served better by the queue's retry.
_TIMEOUT_S = 60.0
_MAX_RETRY_AFTER_S = 600.0
# Only this family takes a size; other servers refuse the field or ignore it.
_RESIZABLE = "text-embedding-3"
_NO_LIST = "the answer is not a list of embeddings"
_CHECK_TEXT = "A short sentence to learn the size of a vector."


@dataclass(frozen=True, slots=True)
class OpenAISettings:
    """What an endpoint is called with. ``base_url`` None is OpenAI's own; ``batch`` is texts a request."""

    api_key: SecretStr
    base_url: str | None
    model: str
    dimensions: int
    absolute_floor: float
    batch: int


class OpenAIEmbedding:
    """EmbeddingProvider over HTTP. One attempt a call: waiting and retrying is the queue's business.

    The client is made at the first call of each process. Neither texts nor keys are logged or put into errors.
    """

    def __init__(self, settings: OpenAISettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None
        self._process = 0

    def model(self) -> EmbeddingModel:
        """Identity of the model; hosted models name no version of their own."""
        chosen = self._settings
        return EmbeddingModel("openai", chosen.model, "hosted", chosen.dimensions, WINDOW, chosen.absolute_floor)

    def check(self) -> None:
        """Embed one short sentence to see that key, model and size are right.

        Raises :class:`~pipeline.errors.ConfigurationError`, or ``TransientError('embedder', …)`` when the endpoint is
        not reached.
        """
        vector = self._request([_CHECK_TEXT])[0]
        if len(vector) != self._settings.dimensions:
            raise ConfigurationError(
                f"DOCMILL_EMBEDDING_DIMENSIONS is {self._settings.dimensions}, but {self._settings.model} gives "
                f"vectors of {len(vector)} dimensions"
            )

    def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        """One unit vector per text, in order; a text over the window is embedded by its first window.

        Raises ``TransientError('embedder', …)`` with the server's own waiting time, ``ConfigurationError`` when the
        endpoint refuses the request, ``ValueError`` for a blank text and for a vector of another size, NaN or zero.
        """
        vectors.refuse_blank(texts)
        return tuple(
            vectors.unit(vector, self._settings.dimensions)
            for batch in self._batches(texts)
            for vector in self._request(batch)
        )

    def count_tokens(self, texts: Sequence[str]) -> tuple[int, ...]:
        """An estimate, the tokenizer of a hosted model being its own: a token for 4 ASCII characters, or 1 other."""
        return tuple(map(_estimate, texts))

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        batch: list[str] = []
        tokens = 0
        for text in texts:
            first = _first_window(text)
            needed = _estimate(first)
            if batch and (len(batch) == self._settings.batch or tokens + needed > _REQUEST_TOKENS):
                yield batch
                batch, tokens = [], 0
            batch.append(first)
            tokens += needed
        if batch:
            yield batch

    def _request(self, texts: list[str]) -> list[list[float]]:
        try:
            response = self._connected().embeddings.create(
                model=self._settings.model,
                input=texts,
                # The SDK's own default is base64, which not every server speaks.
                encoding_format="float",
                dimensions=self._settings.dimensions if self._settings.model.startswith(_RESIZABLE) else openai.omit,
            )
        except (openai.APIConnectionError, openai.APIStatusError, openai.APIResponseValidationError) as problem:
            raise _translated(problem) from None
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise TransientError("embedder", _NO_LIST) from None
        return _in_order(response, len(texts))

    def _connected(self) -> openai.OpenAI:
        with self._lock:
            if self._client is None or self._process != os.getpid():
                # At debug level the SDK logs what it sends: the text of documents.
                logging.getLogger("openai").setLevel(logging.WARNING)
                self._client = openai.OpenAI(
                    api_key=self._settings.api_key.get_secret_value(),
                    base_url=self._settings.base_url,
                    timeout=_TIMEOUT_S,
                    max_retries=0,
                )
                self._process = os.getpid()
            return self._client


def _translated(problem: openai.APIError) -> ConfigurationError | TransientError:
    """A vendor's error as ours: its status and waiting time are kept, its message, which may quote the text, is not."""
    if isinstance(problem, openai.APITimeoutError):
        return TransientError("embedder", f"no answer within {_TIMEOUT_S:g} s")
    if isinstance(problem, openai.APIConnectionError):
        return TransientError("embedder", "the endpoint cannot be reached")
    if not isinstance(problem, openai.APIStatusError):
        return TransientError("embedder", _NO_LIST)
    status = problem.status_code
    if status in (408, 409, 425, 429) or status >= 500:
        return TransientError(
            "embedder", f"the endpoint answered {status}", retry_after_s=_retry_after_s(problem.response.headers)
        )
    if status in (401, 403):
        return ConfigurationError(f"OPENAI_API_KEY is not accepted by the embedding endpoint ({status})")
    if status == 404:
        return ConfigurationError("DOCMILL_EMBEDDING_MODEL is not known to the embedding endpoint (404)")
    return ConfigurationError(f"the embedding endpoint refuses the request ({status}); check DOCMILL_EMBEDDING_MODEL")


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The waiting time a server asks for, in seconds: ``retry-after-ms``, or ``Retry-After`` as seconds or date."""
    for name, per_second in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / per_second
        except ValueError:
            continue
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), _MAX_RETRY_AFTER_S)
    date = email.utils.parsedate_tz(headers.get("retry-after", ""))
    if date is None:
        return None
    return min(max(email.utils.mktime_tz(date) - time.time(), 0.0), _MAX_RETRY_AFTER_S)


def _in_order(response: CreateEmbeddingResponse, expected: int) -> list[list[float]]:
    """The vectors by their index; servers that batch may answer in another order."""
    # The SDK does not validate what it is sent: any field may be missing or of another type.
    data = getattr(response, "data", None)
    if not isinstance(data, list):
        raise TransientError("embedder", _NO_LIST)
    by_index = {getattr(item, "index", None): getattr(item, "embedding", None) for item in data}
    vectors = [by_index.get(index) for index in range(expected)]
    if len(data) != expected or not all(isinstance(vector, list) for vector in vectors):
        raise TransientError("embedder", f"the answer does not hold one vector for each of {expected} texts")
    return [vector for vector in vectors if vector is not None]


def _estimate(text: str) -> int:
    plain = sum(map(str.isascii, text)) if not text.isascii() else len(text)
    return -(-plain // 4) + len(text) - plain


def _first_window(text: str) -> str:
    """The text, or as much of it as the estimate puts within the window."""
    tokens = _estimate(text)
    return text if tokens <= WINDOW else text[: len(text) * WINDOW // tokens]
