"""What client and server say to each other over the socket.

The client sends one request: a length, JSON, and two descriptors (the document, read only, and the
write end of the output pipe). The server answers with JSON lines: ``started`` once the child runs,
then one of ``ended``, ``refused`` or ``unavailable``. The job's output never passes through the server.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from pipeline.types import Json

LENGTH = struct.Struct("!I")
MAX_REQUEST_BYTES = 4 * 1024 * 1024
DESCRIPTORS = 2
# What stands in a run directory.
SOCKET_NAME = "socket"
LOCK_NAME = "lock"
JOBS_DIRECTORY = "jobs"


class Event(StrEnum):
    """``REFUSED`` is a wrong request; ``UNAVAILABLE`` is a machine short of processes, memory or disk."""

    STARTED = "started"
    ENDED = "ended"
    REFUSED = "refused"
    UNAVAILABLE = "unavailable"


class Outcome(StrEnum):
    """How a child ended."""

    DONE = "done"
    TIMED_OUT = "timed_out"
    MEMORY = "memory"
    OUTPUT = "output"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Request:
    """One call. ``memory_bytes`` is what the child may allocate beyond the parsers it was forked with."""

    job: str
    arguments: dict[str, Json]
    timeout_s: float
    memory_bytes: int

    def encode(self) -> bytes:
        body = json.dumps(asdict(self), separators=(",", ":")).encode()
        if len(body) > MAX_REQUEST_BYTES:
            raise ValueError(f"a sandbox request is at most {MAX_REQUEST_BYTES} bytes, this one has {len(body)}")
        return LENGTH.pack(len(body)) + body


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer. ``peak_bytes`` is the largest resident set of the child or a program it waited for.

    ``exception`` is the class name of what left the job, for the log; library messages never leave the child.
    """

    event: Event
    outcome: Outcome | None = None
    peak_bytes: int = 0
    cpu_s: float = 0.0
    signal: int | None = None
    exception: str | None = None
    detail: str = ""

    def encode(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode() + b"\n"

    @staticmethod
    def decode(line: bytes) -> Reply:
        fields = json.loads(line)
        fields["event"] = Event(fields["event"])
        fields["outcome"] = None if fields["outcome"] is None else Outcome(fields["outcome"])
        return Reply(**fields)


def socket_address(descriptor: int, name: str) -> str:
    """A socket's address through its open directory: the kernel's 108 byte limit is on the address, not the path."""
    return str(Path("/proc/self/fd", str(descriptor), name))
