"""A worker instance's own directory: locked for as long as the instance lives, taken away after that."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from pathlib import Path

from pipeline.engines.sandbox import reaper

_PREFIX = "docmill-worker-"
_LOCK = "instance.lock"
# A directory without a lock is one that is being made; after this many seconds it is one that was left behind.
_MADE_WITHIN_S = 60.0

# The lock lives as long as its descriptor: in the main process and in its children, which end with it.
_held: list[int] = []


def make(parent: Path | None) -> Path:
    """A new directory for this instance. What killed instances left in ``parent`` goes: their copies of originals."""
    directory = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
    descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    _held.append(descriptor)
    for other in directory.parent.glob(_PREFIX + "*"):
        if other != directory and _is_abandoned(other):
            remove(other)
    return directory


def remove(directory: Path) -> None:
    """Take a directory away, with what may still run in it."""
    reaper.kill_inside(directory)
    reaper.remove_tree(directory)


def _is_abandoned(directory: Path) -> bool:
    try:
        if directory.stat().st_uid != os.geteuid():
            return False
        descriptor = os.open(directory / _LOCK, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return directory.exists() and time.time() - directory.stat().st_mtime > _MADE_WITHIN_S
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
