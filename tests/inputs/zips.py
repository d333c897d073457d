"""Zip archives, honest and not."""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping

_EOCD_BYTES = 22
# Offsets inside a central directory entry.
_SIZE_AT = 24
_FLAGS_AT = 8
_HEADER_OFFSET_AT = 42


def archive(members: Mapping[str, bytes | str], *, stored: bool = False) -> bytes:
    """An archive of these members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as written:
        for name, data in members.items():
            written.writestr(name, data)
    return buffer.getvalue()


def repacked(data: bytes, changes: Mapping[str, bytes]) -> bytes:
    """The archive with some members replaced or added."""
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        members = {name: read.read(name) for name in read.namelist()}
    return archive({**members, **changes})


def with_declared_size(data: bytes, name: str, size: int) -> bytes:
    """The archive whose directory lies about a member's inflated size."""
    return _patched(data, name, _SIZE_AT, struct.pack("<I", size))


def encrypted(data: bytes, name: str) -> bytes:
    """The archive whose directory says that a member needs a password."""
    return _patched(data, name, _FLAGS_AT, struct.pack("<H", 1))


def overlapping(data: bytes, name: str, other: str) -> bytes:
    """The archive where ``name`` claims the bytes of ``other``."""
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        offset = read.getinfo(other).header_offset
    return _patched(data, name, _HEADER_OFFSET_AT, struct.pack("<I", offset))


def _patched(data: bytes, name: str, at: int, value: bytes) -> bytes:
    directory = struct.unpack_from("<I", data, len(data) - _EOCD_BYTES + 16)[0]
    entry = data.index(b"PK\x01\x02", directory)
    while data[entry + 46 : entry + 46 + len(name)] != name.encode():
        entry = data.index(b"PK\x01\x02", entry + 4)
    return data[: entry + at] + value + data[entry + at + len(value) :]
