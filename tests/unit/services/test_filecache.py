"""A worker's copies: verified, fetched once, pushed out by use, shared by all that work beside it."""

from __future__ import annotations

import hashlib
import io
import os
import random
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipeline.errors import NotFound, SourceGone, TransientError
from pipeline.services import filecache
from pipeline.services.filecache import FileCache
from pipeline.testing.content import MemoryContentStore


class Counting(MemoryContentStore):
    """A store that counts fetches and may fail or give other bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.fetches: Counter[str] = Counter()
        self.trouble: Exception | None = None

    def fetch(self, key: str, target: Path) -> None:
        self.fetches[key] += 1
        super().fetch(key, target)
        if self.trouble is not None:
            raise self.trouble

    def add(self, body: bytes) -> tuple[str, str]:
        """Key and sha256."""
        sha = hashlib.sha256(body).hexdigest()
        self.put(f"files/{sha}", io.BytesIO(body), len(body), "text/plain")
        return f"files/{sha}", sha


@pytest.fixture
def store() -> Counting:
    return Counting()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "not" / "made" / "yet"


@pytest.fixture
def cache(directory: Path, store: Counting) -> FileCache:
    return FileCache(directory, store)


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_bytes_are_fetched_once(cache: FileCache, store: Counting, directory: Path) -> None:
    key, sha = store.add(b"words")
    assert cache.fetch(key, sha).read_bytes() == b"words"
    assert cache.fetch(key, sha) == cache.fetch("files/another key of the same bytes", sha)
    assert store.fetches == {key: 1}
    assert names(directory) == {sha}
    assert directory.stat().st_mode & 0o777 == 0o700


def test_other_bytes_than_were_stored_are_trouble_of_the_store(
    cache: FileCache, store: Counting, directory: Path
) -> None:
    key, sha = store.add(b"words")
    store.put(key, io.BytesIO(b"wor"), 3, "text/plain")
    with pytest.raises(TransientError) as raised:
        cache.fetch(key, sha)
    assert raised.value.dependency == "s3"
    assert names(directory) == set()
    store.add(b"words")
    assert cache.fetch(key, sha).read_bytes() == b"words"


def test_a_store_that_fails_leaves_nothing_half_behind(cache: FileCache, store: Counting, directory: Path) -> None:
    key, sha = store.add(b"words")
    store.trouble = TransientError("s3", "reset")
    with pytest.raises(TransientError, match="reset"):
        cache.fetch(key, sha)
    assert names(directory) == set()


def test_an_object_that_is_gone_ends_the_source(cache: FileCache, directory: Path) -> None:
    with pytest.raises(SourceGone) as raised:
        cache.fetch("files/none", "0" * 64)
    assert isinstance(raised.value.__cause__, NotFound)
    assert names(directory) == set()


def test_the_least_recently_used_goes_first(
    cache: FileCache, store: Counting, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filecache, "CACHE_BYTES", 30)
    added = [store.add(bytes([letter]) * 10) for letter in b"abcd"]
    for age, (key, sha) in zip((300, 200, 100), added, strict=False):
        path = cache.fetch(key, sha)
        os.utime(path, (time.time() - age,) * 2)
    assert len(names(directory)) == 3
    # Used again, the oldest is the newest.
    cache.fetch(*added[0])
    cache.fetch(*added[3])
    assert names(directory) == {sha for _, sha in (added[0], added[2], added[3])}
    assert cache.fetch(*added[1]).read_bytes() == b"b" * 10
    assert store.fetches[added[1][0]] == 2


def test_what_is_asked_for_stays_though_it_is_larger_than_the_cache(
    cache: FileCache, store: Counting, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filecache, "CACHE_BYTES", 5)
    small, large = store.add(b"abc"), store.add(b"x" * 100)
    cache.fetch(*small)
    assert cache.fetch(*large).read_bytes() == b"x" * 100
    assert names(directory) == {large[1]}


def test_copies_under_way_stay_and_abandoned_ones_go(
    cache: FileCache, store: Counting, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filecache, "CACHE_BYTES", 5)
    directory.mkdir(parents=True)
    for name, age in (("part-young", 60), ("part-dead", 7_200)):
        (directory / name).write_bytes(b"x" * 100)
        os.utime(directory / name, (time.time() - age,) * 2)
    _, sha = cache_entry = store.add(b"words")
    cache.fetch(*cache_entry)
    assert names(directory) == {"part-young", sha}


def test_threads_that_push_each_other_out_all_get_their_bytes(
    cache: FileCache, store: Counting, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filecache, "CACHE_BYTES", 50_000)
    bodies = [bytes([number]) * 20_000 for number in range(6)]
    added = [store.add(body) for body in bodies]

    def use(seed: int) -> set[bytes | None]:
        """Every copy as it was found; None for one that others pushed out between fetch and reading."""
        found: set[bytes | None] = set()
        for number in random.Random(seed).choices(range(6), k=60):
            path = cache.fetch(*added[number])
            try:
                found.add(path.read_bytes())
            except FileNotFoundError:
                found.add(None)
        return found

    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(use, range(4)):
            assert found <= {None, *bodies}
    assert not [name for name in names(directory) if name.startswith("part-")]


def test_several_that_want_the_same_bytes_at_once_all_get_them_whole(
    cache: FileCache, store: Counting, directory: Path
) -> None:
    body = random.Random(1).randbytes(2_000_000)
    key, sha = store.add(body)
    with ThreadPoolExecutor(4) as threads:
        paths = threads.map(lambda _: FileCache(directory, store).fetch(key, sha), range(8))
        assert all(path.read_bytes() == body for path in paths)
    assert names(directory) == {sha}
