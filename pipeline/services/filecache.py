"""A worker's own copies of originals, by sha256, so that windows of one document fetch its bytes once."""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from pathlib import Path

from pipeline.errors import NotFound, OriginalMissing, TransientError
from pipeline.ports import FileContentStore

# Copies beyond this many bytes go, the least recently used first.
CACHE_BYTES = 2 * 1024**3
_BLOCK = 1024 * 1024
# Copies under way begin with this; one that was not written to for so long is of a process that died.
_PART = "part-"
_ABANDONED_S = 3600.0


class FileCache:
    """Verified local copies. Safe for several processes sharing one directory."""

    def __init__(self, directory: Path, content: FileContentStore) -> None:
        self._directory = directory
        self._content = content

    def fetch(self, key: str, sha256: str) -> Path:
        """A local file whose bytes have this sha256.

        Raises ``TransientError('s3', …)`` when the store fails or gives other bytes than were stored, and
        :class:`OriginalMissing` when the object is no more.
        """
        path = self._directory / sha256
        try:
            os.utime(path)
        except FileNotFoundError:
            return self._load(key, sha256, path)
        return path

    def _load(self, key: str, sha256: str, path: Path) -> Path:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=self._directory, prefix=_PART)
        os.close(handle)
        part = Path(name)
        try:
            self._content.fetch(key, part)
            if _sha256(part) != sha256:
                raise TransientError("s3", "the object's bytes are not those that were stored")
            part.replace(path)
        except NotFound as problem:
            raise OriginalMissing("the original's bytes are gone") from problem
        finally:
            part.unlink(missing_ok=True)
        self._shrink(keep=path)
        return path

    def _shrink(self, keep: Path) -> None:
        sizes: list[tuple[float, int, Path]] = []
        for path in self._directory.iterdir():
            try:
                status = path.stat()
            except FileNotFoundError:
                continue  # another process took it away first
            if path.name.startswith(_PART) and time.time() - status.st_mtime < _ABANDONED_S:
                continue
            sizes.append((status.st_mtime, status.st_size, path))
        total = sum(size for _, size, _ in sizes)
        for _, size, path in sorted(sizes):
            if total <= CACHE_BYTES:
                return
            if path != keep:
                path.unlink(missing_ok=True)
                total -= size


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while block := content.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
