"""File contents in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pipeline.errors import NotFound
from pipeline.ports import StoredContent


class MemoryContentStore:
    """A :class:`~pipeline.ports.FileContentStore` for one process."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    def put(self, key: str, content: BinaryIO, byte_size: int, media_type: str) -> None:  # noqa: ARG002 (the port's)
        stored = b""
        while len(stored) < byte_size and (piece := content.read(byte_size - len(stored))):
            stored += piece
        if len(stored) < byte_size:
            raise ValueError(f"content ended after {len(stored)} of {byte_size} bytes")
        self._objects[key] = stored

    def fetch(self, key: str, target: Path) -> None:
        target.write_bytes(self._stored(key))

    def read(self, key: str, offset: int = 0, length: int | None = None) -> Iterator[bytes]:
        rest = self._stored(key)[offset:]
        wanted = rest if length is None else rest[:length]
        return iter((wanted,) if wanted else ())

    def stat(self, key: str) -> StoredContent | None:
        stored = self._objects.get(key)
        return None if stored is None else StoredContent(key=key, byte_size=len(stored))

    def delete(self, key: str) -> None:
        self._objects.pop(key, None)

    def keys(self, prefix: str) -> Iterator[str]:
        return iter([key for key in self._objects if key.startswith(prefix)])

    def _stored(self, key: str) -> bytes:
        if key not in self._objects:
            raise NotFound("no such object")
        return self._objects[key]
