"""One connection to the server: its request as it arrives, its child while it runs, how that child ended."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.engines.sandbox import child, reaper, wire

# A child that died with this share of its memory in use is taken to have died of it: an allocator that doubles
# a buffer fails when the next size no longer fits, with between a third and all of the limit resident.
NEAR_LIMIT = 1 / 3
# Beyond the client's own clock, for clients that died without closing.
GRACE_S = 2.0
# Tesseract is one process and a converter a handful; a fork bomb is neither.
MAX_DESCENDANTS = 64
_SIGNAL_BASE = 128
# Exit codes, and signals as negative numbers. A SIGKILL that is not the server's own verdict is the kernel's
# answer to a machine without memory.
_OUTCOMES = {
    child.EXIT_DONE: wire.Outcome.DONE,
    child.EXIT_MEMORY: wire.Outcome.MEMORY,
    child.EXIT_FILE_SIZE: wire.Outcome.OUTPUT,
    -signal.SIGXFSZ: wire.Outcome.OUTPUT,
    -signal.SIGXCPU: wire.Outcome.TIMED_OUT,
    -signal.SIGKILL: wire.Outcome.MEMORY,
}


class BadRequest(Exception):
    """What came over the connection is no request."""


@dataclass(slots=True)
class Connection:
    """A client, and what it has sent so far."""

    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)
    descriptors: list[int] = field(default_factory=list)
    asked: bool = False

    def receive(self) -> bool:
        """Take what is there; False at the end of the client's stream."""
        try:
            data, descriptors, _, _ = socket.recv_fds(self.socket, 65536, wire.DESCRIPTORS)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        self.descriptors += descriptors
        self.received += data
        return bool(data)

    def request(self) -> wire.Request | None:
        """The request, once, when it is whole. Raises :class:`BadRequest`, also for anything after it."""
        if self.asked:
            raise BadRequest
        if len(self.received) < wire.LENGTH.size:
            return None
        (length,) = wire.LENGTH.unpack_from(self.received)
        if length > wire.MAX_REQUEST_BYTES or len(self.descriptors) > wire.DESCRIPTORS:
            raise BadRequest
        if len(self.received) < wire.LENGTH.size + length:
            return None
        if len(self.descriptors) != wire.DESCRIPTORS:
            raise BadRequest
        self.asked = True
        return wire.Request(**json.loads(bytes(self.received[wire.LENGTH.size :])))

    def tell(self, reply: wire.Reply) -> None:
        """Send an answer; a client that is gone does not want it."""
        with contextlib.suppress(OSError):
            self.socket.send(reply.encode())

    def close_descriptors(self) -> None:
        for descriptor in self.descriptors:
            os.close(descriptor)
        self.descriptors.clear()

    def close(self) -> None:
        self.close_descriptors()
        self.socket.close()


@dataclass(slots=True)
class RunningChild:
    """A forked child: its process, its limits, and what the server decided about it.

    ``has_family`` is whether it may have other processes below it, whose memory is its own too.
    """

    connection: Connection
    request: wire.Request
    pid: int
    status: int
    scratch: Path
    has_family: bool
    baseline_resident: int
    deadline: float
    seen_bytes: int = 0
    verdict: wire.Outcome | None = None
    ending: wire.Reply | None = None

    def kill(self, verdict: wire.Outcome) -> None:
        """End the whole process group; the first verdict stands."""
        if self.verdict is None:
            self.verdict = verdict
        reaper.kill_group(self.pid)

    def watch(self, now: float) -> None:
        """Kill what is over its time, or whose programs together are over its memory or number."""
        if now > self.deadline:
            self.kill(wire.Outcome.TIMED_OUT)
        elif self.has_family:
            self._watch_family()

    def _watch_family(self) -> None:
        family = [self.pid, *reaper.descendants(self.pid)]
        self.seen_bytes = max(self.seen_bytes, sum(map(reaper.proportional_bytes, family)))
        if len(family) > MAX_DESCENDANTS:
            self.kill(wire.Outcome.CRASHED)
        elif self.seen_bytes > self.baseline_resident + self.request.memory_bytes:
            self.kill(wire.Outcome.MEMORY)

    def is_over(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def bury(self) -> None:
        """End what is left of the group, collect the child, and note how it ended."""
        reaper.kill_group(self.pid)
        _, status, usage = os.wait4(self.pid, 0)
        exception = self._last_words()
        os.close(self.status)
        self.ending = self._judge(status, usage, exception)

    def clean(self) -> None:
        reaper.remove_tree(self.scratch)

    def _judge(self, status: int, usage: resource.struct_rusage, exception: str | None) -> wire.Reply:
        code = os.waitstatus_to_exitcode(status)
        if code > _SIGNAL_BASE:  # bubblewrap says by its exit code which signal its program died of
            code = _SIGNAL_BASE - code
        if code == child.EXIT_UNCONFINED and self.verdict is None:
            return wire.Reply(wire.Event.UNAVAILABLE, detail=f"a sandbox child could not be confined ({exception})")
        if code == child.EXIT_DISK_FULL and self.verdict is None:
            return wire.Reply(wire.Event.UNAVAILABLE, detail="the work directory is full")
        peak = max(usage.ru_maxrss * 1024, self.seen_bytes)
        outcome = self.verdict or self._outcome(code, peak)
        return wire.Reply(
            wire.Event.ENDED,
            outcome,
            peak,
            usage.ru_utime + usage.ru_stime,
            -code if code < 0 else None,
            exception,
        )

    def _outcome(self, code: int, peak: int) -> wire.Outcome:
        if code in _OUTCOMES:
            return _OUTCOMES[code]
        near_limit = peak - self.baseline_resident >= self.request.memory_bytes * NEAR_LIMIT
        return wire.Outcome.MEMORY if near_limit else wire.Outcome.CRASHED

    def _last_words(self) -> str | None:
        try:
            said = os.read(self.status, child.MAX_STATUS_BYTES)
        except BlockingIOError:
            return None
        text = said.decode("ascii", "replace")
        return "".join(letter for letter in text if letter.isalnum() or letter in "_.: ") or None


def deadline(request: wire.Request) -> float:
    return time.monotonic() + request.timeout_s + GRACE_S
