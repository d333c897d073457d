"""What a zip archive must pass before a parser opens it: never more than it may expand to, never a document type.

The central directory is judged first, for what it admits; then every member is inflated and counted,
because it may lie. Nothing is kept of what is inflated.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

from pipeline.errors import Failure, FailureCode

MAX_ENTRIES = 5_000
# The ratio is judged only beyond this: a small file of blanks compresses a thousandfold and hurts nobody.
GRACE_BYTES = 10 * 1024 * 1024
_READ_BYTES = 256 * 1024
# A central directory entry is 46 bytes and a name; names of office parts stay far below a kilobyte.
MAX_DIRECTORY_BYTES = MAX_ENTRIES * 1024
_EOCD = struct.Struct("<4sHHHHIIH")
_EOCD_MAGIC = b"PK\x05\x06"
_ZIP64_EOCD = struct.Struct("<4sQHHIIQQQQ")
_ZIP64_MAGIC = b"PK\x06\x06"
_ZIP64_LOCATOR_MAGIC = b"PK\x06\x07"
_ZIP64_LOCATOR_BYTES = 20
_MAX_COMMENT = 0xFFFF
# Bit 0 of a member's flags.
ENCRYPTED = 0x1
# Office parts never declare a document type, and a raw "<!" cannot stand in their text. UTF-16 hides nothing.
_DOCUMENT_TYPES = tuple(
    mark.encode(encoding) for mark in ("<!DOCTYPE", "<!ENTITY") for encoding in ("ascii", "utf-16-le", "utf-16-be")
)
_LONGEST_MARK = max(map(len, _DOCUMENT_TYPES))
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What zipfile and zlib raise on damage.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    struct.error,
    UnicodeDecodeError,
    OSError,
    ValueError,
    RuntimeError,
)


@dataclass(frozen=True, slots=True)
class InflateLimits:
    """MAX_INFLATED_BYTES and MAX_INFLATE_RATIO of the contract."""

    max_bytes: int
    max_ratio: int


def inspect(content: BinaryIO, limits: InflateLimits) -> Failure | None:
    """Why the archive must not be opened, or None. ``content`` is left at its beginning.

    ``encrypted`` for a member with a password, ``too-large`` with both numbers, ``malformed`` for what is damaged,
    overlaps, lies about its size or holds an XML document type.
    """
    try:
        refused = directory_problem(content)
        if refused is not None:
            return refused
        with zipfile.ZipFile(content) as archive:
            return _judge(archive, content.seek(0, 2), limits)
    except DAMAGE:
        return Failure(FailureCode.MALFORMED, "The file is a damaged zip archive.")
    finally:
        content.seek(0)


def directory_problem(content: BinaryIO) -> Failure | None:
    """Whether the archive's directory is where it must be and small enough to be read. Bounded reads only."""
    size = content.seek(0, 2)
    content.seek(max(0, size - _EOCD.size - _MAX_COMMENT))
    tail = content.read()
    at = _end_record(tail)
    if at is None:
        return Failure(FailureCode.MALFORMED, "The zip archive has no directory at its end, or something follows it.")
    entries, length = _directory_size(tail, at)
    if entries > MAX_ENTRIES:
        detail = f"The archive has {entries:,} members; the limit is {MAX_ENTRIES:,}."
        return Failure(FailureCode.TOO_LARGE, detail)
    if length > MAX_DIRECTORY_BYTES:
        detail = f"The archive's directory has {length:,} bytes; the limit is {MAX_DIRECTORY_BYTES:,}."
        return Failure(FailureCode.TOO_LARGE, detail)
    return None


def ends_as_zip(content: BinaryIO) -> bool:
    """Whether the file, read from its end as zip readers do, is an archive whatever it begins with."""
    size = content.seek(0, 2)
    content.seek(max(0, size - _EOCD.size - _MAX_COMMENT))
    return _end_record(content.read()) is not None


def _end_record(tail: bytes) -> int | None:
    """Where the end-of-directory record starts whose comment ends the file; None without one."""
    at = tail.rfind(_EOCD_MAGIC)
    while at >= 0:
        if at + _EOCD.size <= len(tail):
            comment = _EOCD.unpack_from(tail, at)[-1]
            if at + _EOCD.size + comment == len(tail):
                return at
        at = tail.rfind(_EOCD_MAGIC, 0, at)
    return None


def _directory_size(tail: bytes, at: int) -> tuple[int, int]:
    """Members and bytes of the central directory, from the zip64 record where there is one."""
    _, _, _, _, entries, length, _, _ = _EOCD.unpack_from(tail, at)
    locator = at - _ZIP64_LOCATOR_BYTES
    record = locator - _ZIP64_EOCD.size
    if record >= 0 and tail.startswith(_ZIP64_LOCATOR_MAGIC, locator):
        magic, _, _, _, _, _, _, entries64, length64, _ = _ZIP64_EOCD.unpack_from(tail, record)
        if magic == _ZIP64_MAGIC:
            return entries64, length64
    return entries, length


def _judge(archive: zipfile.ZipFile, size: int, limits: InflateLimits) -> Failure | None:
    members = archive.infolist()
    if len(members) > MAX_ENTRIES:
        detail = f"The archive has {len(members):,} members; the limit is {MAX_ENTRIES:,}."
        return Failure(FailureCode.TOO_LARGE, detail)
    if any(member.flag_bits & ENCRYPTED for member in members):
        return Failure(FailureCode.ENCRYPTED, "The document's parts are protected with a password.")
    if any(member.compress_type not in _COMPRESSIONS for member in members):
        return Failure(FailureCode.MALFORMED, "A part of the document is compressed in a way office files never are.")
    if _overlap(members):
        return Failure(FailureCode.MALFORMED, "Members of the zip archive overlap.")
    declared = sum(member.file_size for member in members)
    # Sizes that the directory claims may lie; together they are no more than the file.
    packed = min(sum(member.compress_size for member in members), size)
    return _excess(declared, packed, limits) or _inflate(archive, members, limits)


def _overlap(members: list[zipfile.ZipInfo]) -> bool:
    """Whether two members share bytes: how a small archive repeats one bomb many times."""
    end = 0
    for member in sorted(members, key=lambda each: each.header_offset):
        if member.header_offset < end:
            return True
        end = member.header_offset + 30 + member.compress_size
    return False


def _excess(inflated: int, packed: int, limits: InflateLimits) -> Failure | None:
    if inflated > limits.max_bytes:
        detail = f"The document expands to {inflated:,} bytes or more; the limit is {limits.max_bytes:,}."
        return Failure(FailureCode.TOO_LARGE, detail)
    if inflated > GRACE_BYTES and inflated > packed * limits.max_ratio:
        ratio = inflated // max(1, packed)
        detail = f"The document expands {ratio:,} times or more; the limit is {limits.max_ratio:,} times."
        return Failure(FailureCode.TOO_LARGE, detail)
    return None


def _inflate(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], limits: InflateLimits) -> Failure | None:
    total = packed = 0
    for member in members:
        inflated = 0
        tail: bytes | None = None
        for data in _blocks(archive, member):
            if inflated == 0 and data.lstrip(b"\xef\xbb\xbf\xfe\xff\x00 \t\r\n").startswith(b"<"):
                tail = b""
            if tail is not None:
                window = tail + data
                if any(mark in window for mark in _DOCUMENT_TYPES):
                    return Failure(FailureCode.MALFORMED, "A part of the document declares an XML document type.")
                tail = window[-_LONGEST_MARK:]
            inflated += len(data)
            excess = _excess(inflated, member.compress_size, limits)
            excess = excess or _excess(total + inflated, packed + member.compress_size, limits)
            if excess is not None:
                return excess
        total += inflated
        packed += member.compress_size
    return None


def _blocks(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Iterator[bytes]:
    with archive.open(member) as part:
        while data := part.read(_READ_BYTES):
            yield data
