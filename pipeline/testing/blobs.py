"""Values by reference, in memory."""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict

from pipeline.errors import NotFound


class MemoryBlobs:
    """Adapter of :class:`pipeline.ports.BlobStore` for one tenant; every write counts at once."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}
        self._owned: defaultdict[str, set[str]] = defaultdict(set)
        self._lock = threading.Lock()

    def put(self, value: bytes, *, owner: str) -> str:
        digest = hashlib.sha256(value).hexdigest()
        with self._lock:
            self._values[digest] = value
            self._owned[owner].add(digest)
        return digest

    def get(self, digest: str) -> bytes:
        if digest not in self._values:
            raise NotFound("no such value")
        return self._values[digest]

    def release(self, owner: str) -> int:
        with self._lock:
            released = self._owned.pop(owner, set())
            gone = released.difference(*self._owned.values())
            for digest in gone:
                del self._values[digest]
        return len(gone)
