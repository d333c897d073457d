"""Files in Microsoft's compound format, written by hand: as many empty streams as a test names."""

from __future__ import annotations

import struct

SECTOR = 512
_FREE, _END, _FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
_NO_STREAM = 0xFFFFFFFF
_ROOT, _STREAM = 5, 2


def compound(*streams: str) -> bytes:
    """At most three streams, each without content: sector 0 is the allocation table, sector 1 the directory."""
    header = struct.pack(
        "<8s16sHHHHH6xIIIIIIIII",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        bytes(16),
        0x3E,
        3,
        0xFFFE,
        9,
        6,
        0,
        1,
        1,
        0,
        4096,
        _END,
        0,
        _END,
        0,
    )
    header += struct.pack("<109I", 0, *[_FREE] * 108)
    table = struct.pack("<128I", _FAT, _END, *[_FREE] * 126)
    entries = [_entry("Root Entry", _ROOT, child=1 if streams else _NO_STREAM)]
    entries += [
        _entry(name, _STREAM, right=number + 2 if number + 1 < len(streams) else _NO_STREAM)
        for number, name in enumerate(streams)
    ]
    directory = b"".join(entries).ljust(SECTOR, b"\x00")
    return header + table + directory


def _entry(name: str, kind: int, *, right: int = _NO_STREAM, child: int = _NO_STREAM) -> bytes:
    encoded = name.encode("utf-16-le") + b"\x00\x00"
    return struct.pack("<64sHBBIII16xI8x8xIQ", encoded, len(encoded), kind, 1, _NO_STREAM, right, child, 0, _END, 0)
