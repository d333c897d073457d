"""An embedding model in a few lines: bags of words, hashed. Equal words are near, nothing is understood."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from pipeline import words
from pipeline.types import EmbeddingModel


class HashedWords:
    """EmbeddingProvider whose vectors depend on the words of a text and on nothing else."""

    def __init__(self, dimensions: int = 256, *, version: str = "1") -> None:
        self._model = EmbeddingModel("memory", "hashed-words", version, dimensions, 256, 0.55)

    def model(self) -> EmbeddingModel:
        return self._model

    def check(self) -> None:
        """Nothing can be wrong with it."""

    def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        """One unit vector per text, in order. Raises ValueError for a blank text."""
        if any(not text.strip() for text in texts):
            raise ValueError("a text without a character cannot be embedded")
        return tuple(map(self._vector, texts))

    def count_tokens(self, texts: Sequence[str]) -> tuple[int, ...]:
        return tuple(sum(1 for _ in words.terms(text)) for text in texts)

    def _vector(self, text: str) -> tuple[float, ...]:
        counts = [0.0] * self._model.dimensions
        for term in [*words.terms(text)][: self._model.window] or [text]:
            digest = hashlib.blake2b(f"{self._model.version} {term}".encode(), digest_size=8).digest()
            counts[int.from_bytes(digest) % len(counts)] += 1.0
        length = math.hypot(*counts)
        return tuple(count / length for count in counts)
