"""The job that tries, from inside, what a hostile document would: run once at every start."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import BinaryIO

from pydantic import TypeAdapter

from pipeline.types import Json

FINDINGS: TypeAdapter[list[str]] = TypeAdapter(list[str])


def confinement(content: BinaryIO, arguments: dict[str, Json]) -> bytes:
    """What is open that must be closed, or closed that must be open; an empty list when all is well.

    ``arguments["private"]`` is a file that must not be readable, ``arguments["own"]`` one that must be.
    """
    findings = []
    if not content.read(1):
        findings.append("the document cannot be read")
    if _readable(str(arguments["private"])):
        findings.append("private files can be read")
    if not _readable(str(arguments["own"])):
        findings.append("the project's own modules cannot be read (run as their owner, or open them to all)")
    if _can_make_socket():
        findings.append("sockets can be made")
    return FINDINGS.dump_json(findings)


def _readable(path: str) -> bool:
    try:
        with Path(path).open("rb") as file:
            file.read(1)
    except OSError:
        return False
    return True


def _can_make_socket() -> bool:
    try:
        socket.socket(socket.AF_UNIX).close()
    except OSError:
        return False
    return True
