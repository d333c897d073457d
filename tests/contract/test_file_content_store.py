"""What every FileContentStore does, in memory and in S3."""

from __future__ import annotations

import hashlib
import io
import os
import uuid
from pathlib import Path

import pytest

from pipeline.errors import NotFound
from pipeline.ports import FileContentStore, StoredContent
from pipeline.testing.content import MemoryContentStore

MEBIBYTE = 1024 * 1024


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest) -> FileContentStore:
    if request.param == "memory":
        return MemoryContentStore()
    real: FileContentStore = request.getfixturevalue("content_store")
    return real


@pytest.fixture
def place() -> str:
    """A prefix nobody else uses."""
    return f"contract/{uuid.uuid4()}"


def put(store: FileContentStore, key: str, content: bytes) -> None:
    store.put(key, io.BytesIO(content), len(content), "application/octet-stream")


@pytest.mark.parametrize("size", [0, 1, 5 * MEBIBYTE - 1, 5 * MEBIBYTE, 11 * MEBIBYTE + 7])
def test_what_was_put_comes_back(store: FileContentStore, place: str, tmp_path: Path, size: int) -> None:
    content = os.urandom(size)
    put(store, f"{place}/a", content)
    assert store.stat(f"{place}/a") == StoredContent(key=f"{place}/a", byte_size=size)
    assert hashlib.sha256(b"".join(store.read(f"{place}/a"))).digest() == hashlib.sha256(content).digest()
    store.fetch(f"{place}/a", tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == content


def test_exactly_the_declared_bytes_are_read(store: FileContentStore, place: str) -> None:
    stream = io.BytesIO(b"first|second")
    store.put(f"{place}/a", stream, 5, "text/plain")
    assert b"".join(store.read(f"{place}/a")) == b"first"
    assert stream.read() == b"|second"


@pytest.mark.parametrize("declared", [4, 6 * MEBIBYTE])
def test_content_that_ends_early_is_not_stored(store: FileContentStore, place: str, declared: int) -> None:
    with pytest.raises(ValueError, match=f"content ended after 3 of {declared} bytes"):
        store.put(f"{place}/a", io.BytesIO(b"abc"), declared, "text/plain")
    assert store.stat(f"{place}/a") is None


def test_a_stream_that_gives_little_at_a_time_is_read_to_its_end(store: FileContentStore, place: str) -> None:
    class Dripping(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size, 1000) if size is not None and size >= 0 else 1000)

    content = os.urandom(10_500)
    store.put(f"{place}/a", Dripping(content), len(content), "text/plain")
    assert b"".join(store.read(f"{place}/a")) == content


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (0, 4, b"0123"),
        (3, 4, b"3456"),
        (7, None, b"789"),
        (7, 100, b"789"),
        (0, 0, b""),
        (5, 0, b""),
        (10, None, b""),
        (10, 5, b""),
        (99, None, b""),
    ],
)
def test_ranges(store: FileContentStore, place: str, offset: int, length: int | None, expected: bytes) -> None:
    put(store, f"{place}/a", b"0123456789")
    assert b"".join(store.read(f"{place}/a", offset, length)) == expected


def test_an_empty_object_has_no_range(store: FileContentStore, place: str) -> None:
    put(store, f"{place}/a", b"")
    assert b"".join(store.read(f"{place}/a", 3)) == b""


@pytest.mark.parametrize(("offset", "length"), [(0, None), (2, None), (0, 0)])
def test_reading_what_is_not_there(store: FileContentStore, place: str, offset: int, length: int | None) -> None:
    with pytest.raises(NotFound):
        store.read(f"{place}/none", offset, length)


def test_fetching_what_is_not_there_leaves_no_file(store: FileContentStore, place: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        store.fetch(f"{place}/none", tmp_path / "fetched")
    assert list(tmp_path.iterdir()) == []
    assert store.stat(f"{place}/none") is None


def test_putting_again_replaces(store: FileContentStore, place: str) -> None:
    put(store, f"{place}/a", b"first and longer")
    put(store, f"{place}/a", b"second")
    assert b"".join(store.read(f"{place}/a")) == b"second"


def test_deleting_twice_is_no_error(store: FileContentStore, place: str) -> None:
    put(store, f"{place}/a", b"x")
    store.delete(f"{place}/a")
    store.delete(f"{place}/a")
    assert store.stat(f"{place}/a") is None


def test_keys_begin_with_the_prefix(store: FileContentStore, place: str) -> None:
    names = [f"{place}/t1/a", f"{place}/t1/b", f"{place}/t10/a", f"{place}/t2/deep/er/c"]
    for name in names:
        put(store, name, b"x")
    assert sorted(store.keys(f"{place}/")) == names
    assert sorted(store.keys(f"{place}/t1")) == names[:3]
    assert sorted(store.keys(f"{place}/t1/")) == names[:2]
    assert list(store.keys(f"{place}/t9")) == []
    store.delete(names[0])
    assert sorted(store.keys(f"{place}/t1/")) == names[1:2]


def test_more_keys_than_one_answer_holds(store: FileContentStore, place: str) -> None:
    for number in range(1005):
        put(store, f"{place}/{number:04}", b"")
    assert len(list(store.keys(f"{place}/"))) == 1005
