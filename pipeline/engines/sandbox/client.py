"""Asking the sandbox for one job. Stateless: every call is its own connection, safe after a fork."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

import structlog

from pipeline.engines.sandbox import wire
from pipeline.errors import DocmillError, Failure, FailureCode, TransientError
from pipeline.types import Json

log = structlog.get_logger(__name__)

# What one call may return. A window of 32 dense pages is about 4 MB of JSON; MAX_TEXT_BYTES is 20 MiB.
MAX_OUTPUT_BYTES = 128 * 1024 * 1024
# Importing the heaviest parser on first use takes 3 s on an idle machine.
START_TIMEOUT_S = 60.0
# How long the server may take to kill a process group and say so.
KILL_TIMEOUT_S = 10.0
READ_BYTES = 1024 * 1024


class SandboxMisuse(DocmillError):
    """The sandbox was asked for a job it does not know, or could not load: a bug, not a document's fault."""


class DeathCause(StrEnum):
    """Why a child gave no result. ``OUTPUT`` is more output, or a larger temporary file, than is allowed."""

    TIMED_OUT = "timed_out"
    MEMORY = "memory"
    OUTPUT = "output"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class SandboxReply:
    """What the job returned (JSON bytes from a process that read hostile input: validate them), and its cost."""

    output: bytes
    peak_bytes: int
    cpu_s: float


@dataclass(frozen=True, slots=True)
class SandboxDeath:
    """A child that died: of what, under which limits, with its peak resident set in bytes and its signal."""

    cause: DeathCause
    timeout_s: float
    memory_bytes: int
    peak_bytes: int = 0
    signal: int | None = None
    exception: str | None = None

    def failure(self) -> Failure:
        """The document problem a user sees, marked as a death so that the ledger counts it."""
        match self.cause:
            case DeathCause.TIMED_OUT:
                detail = f"Reading the document took longer than the limit of {self.timeout_s:g} seconds."
                return Failure(FailureCode.TIMED_OUT, detail, died=True)
            case DeathCause.MEMORY:
                detail = f"Reading the document needs more memory than the limit of {_mebibytes(self.memory_bytes)}."
                return Failure(FailureCode.TOO_LARGE, detail, died=True)
            case DeathCause.OUTPUT:
                detail = f"The document expands to more than the limit of {_mebibytes(MAX_OUTPUT_BYTES)}."
                return Failure(FailureCode.TOO_LARGE, detail, died=True)
            case DeathCause.CRASHED:
                return Failure(FailureCode.CRASHED, "The parser stopped unexpectedly on this document.", died=True)


class Sandbox(Protocol):
    """What an adapter needs of the sandbox; :class:`SandboxClient` is the real one."""

    def call(
        self, job: str, content: Path, arguments: dict[str, Json], *, timeout_s: float, memory_bytes: int
    ) -> SandboxReply | SandboxDeath:
        """Run ``job`` on the document. Raises ``TransientError('sandbox', …)`` when no child could run."""


class SandboxClient:
    """Calls a sandbox server through the socket in its run directory."""

    def __init__(self, run_dir: Path, *, max_output_bytes: int = MAX_OUTPUT_BYTES) -> None:
        self._run_dir = run_dir
        self._max_output_bytes = max_output_bytes

    def call(
        self, job: str, content: Path, arguments: dict[str, Json], *, timeout_s: float, memory_bytes: int
    ) -> SandboxReply | SandboxDeath:
        """Run one job in a child of its own and wait for it.

        ``timeout_s`` is wall seconds from the moment the child runs; ``memory_bytes`` what it may allocate.
        Raises ``TransientError('sandbox', …)`` when the server is gone or cannot fork, and
        :class:`SandboxMisuse` for a job that is not in the registry.
        """
        request = wire.Request(job, arguments, timeout_s, memory_bytes)
        started = time.monotonic()
        with _connect(self._run_dir) as connection:
            reader, writer = os.pipe()
            try:
                with content.open("rb") as document:
                    _send(connection, request, document.fileno(), writer)
                os.close(writer)
                writer = -1
                ending, output = _Exchange(connection, reader, timeout_s, self._max_output_bytes).run()
            finally:
                os.close(reader)
                if writer >= 0:
                    os.close(writer)
        return self._result(request, ending, output, time.monotonic() - started)

    def _result(
        self, request: wire.Request, ending: wire.Reply, output: bytes, elapsed_s: float
    ) -> SandboxReply | SandboxDeath:
        if ending.event is wire.Event.REFUSED:
            raise SandboxMisuse(ending.detail)
        if ending.event is wire.Event.UNAVAILABLE or ending.outcome is None:
            raise TransientError("sandbox", ending.detail)
        if ending.outcome is wire.Outcome.DONE:
            return SandboxReply(output, ending.peak_bytes, ending.cpu_s)
        death = SandboxDeath(
            DeathCause(ending.outcome.value),
            request.timeout_s,
            request.memory_bytes,
            ending.peak_bytes,
            ending.signal,
            ending.exception,
        )
        log.warning(
            "sandbox.died",
            job=request.job,
            cause=death.cause.value,
            peak_bytes=death.peak_bytes,
            signal=death.signal,
            exception=death.exception,
            elapsed_s=round(elapsed_s, 3),
        )
        return death


def _connect(run_dir: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        directory = os.open(run_dir, os.O_PATH | os.O_DIRECTORY)
        try:
            connection.connect(wire.socket_address(directory, wire.SOCKET_NAME))
        finally:
            os.close(directory)
    except OSError as problem:
        connection.close()
        raise TransientError("sandbox", "the sandbox server is not running") from problem
    return connection


def _send(connection: socket.socket, request: wire.Request, document: int, output: int) -> None:
    message = request.encode()
    # A server that closed already has said why, or is gone: either way reading its answer tells.
    with contextlib.suppress(OSError):
        sent = socket.send_fds(connection, [message], [document, output])
        if sent < len(message):
            connection.sendall(message[sent:])


class _Exchange:
    """One call in flight: reads the output pipe and the server's answers, and keeps the clock."""

    def __init__(self, connection: socket.socket, reader: int, timeout_s: float, max_output_bytes: int) -> None:
        self._connection = connection
        self._reader = reader
        self._timeout_s = timeout_s
        self._max_output_bytes = max_output_bytes
        self._output = bytearray()
        self._line = bytearray()
        self._verdict: wire.Outcome | None = None
        self._deadline = time.monotonic() + START_TIMEOUT_S
        self._running = False

    def run(self) -> tuple[wire.Reply, bytes]:
        """The server's last word, and everything the child wrote."""
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        poll.register(self._reader, select.POLLIN)
        os.set_blocking(self._reader, False)
        ending: wire.Reply | None = None
        while ending is None:
            remaining = self._deadline - time.monotonic()
            if remaining <= 0:
                self._expire()
                continue
            for descriptor, _ in poll.poll(remaining * 1000 + 1):
                if descriptor != self._reader:
                    ending = self._read_answer()
                elif not self._read_output():
                    poll.unregister(self._reader)
        # The server speaks once nothing of the job runs any more: what was written is in the pipe. Its end is
        # not waited for, since another thread's fork may hold a copy of the writing side.
        while self._read_output():
            pass
        return self._judge(ending), bytes(self._output)

    def _judge(self, ending: wire.Reply) -> wire.Reply:
        """The client's own verdict (time, output) outranks how the killed child looked to the server."""
        if self._verdict is None or ending.event is not wire.Event.ENDED:
            return ending
        return wire.Reply(ending.event, self._verdict, ending.peak_bytes, ending.cpu_s, ending.signal, ending.exception)

    def _expire(self) -> None:
        if self._verdict is not None:
            raise TransientError("sandbox", "the sandbox server does not answer")
        if not self._running:
            raise TransientError("sandbox", "the sandbox server did not start the job in time")
        self._stop(wire.Outcome.TIMED_OUT)

    def _stop(self, verdict: wire.Outcome) -> None:
        """Have the child killed: the server takes the end of our stream for it."""
        self._verdict = verdict
        self._deadline = time.monotonic() + KILL_TIMEOUT_S
        # A server that has closed already has said its last word, which is still to be read.
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def _read_output(self) -> bool:
        """Take some output; False when there is no more for now."""
        try:
            data = os.read(self._reader, READ_BYTES)
        except BlockingIOError:
            return False
        if self._verdict is None:
            self._output += data
            if len(self._output) > self._max_output_bytes:
                self._output.clear()
                self._stop(wire.Outcome.OUTPUT)
        return bool(data)

    def _read_answer(self) -> wire.Reply | None:
        try:
            data = self._connection.recv(4096)
        except OSError as problem:
            raise TransientError("sandbox", "the sandbox server went away") from problem
        if not data:
            raise TransientError("sandbox", "the sandbox server went away")
        self._line += data
        while b"\n" in self._line:
            line, _, rest = bytes(self._line).partition(b"\n")
            self._line = bytearray(rest)
            reply = wire.Reply.decode(line)
            if reply.event is not wire.Event.STARTED:
                return reply
            self._running = True
            self._deadline = time.monotonic() + self._timeout_s
        return None


def _mebibytes(count: int) -> str:
    return f"{count / (1024 * 1024):,.0f} MiB"
