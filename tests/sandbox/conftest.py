"""A real sandbox server with the tests' own jobs, shared by a module."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pipeline
from pipeline.engines.sandbox.client import SandboxClient, SandboxDeath, SandboxReply
from pipeline.engines.sandbox.process import SandboxProcess, running_sandbox
from pipeline.types import Json

REGISTRY = "tests.sandbox.probes:JOBS"
MEBIBYTE = 1024 * 1024

Call = Callable[..., SandboxReply | SandboxDeath]


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    with running_sandbox(tmp_path_factory.mktemp("sandbox") / "run", registry=REGISTRY) as process:
        yield process


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "document.bin"
    path.write_bytes(b"the document")
    return path


@pytest.fixture
def call(sandbox: SandboxProcess, document: Path) -> Call:
    return caller(sandbox.client(), document)


@pytest.fixture
def target(tmp_path: Path, sandbox: SandboxProcess) -> Iterator[dict[str, str]]:
    """A data directory with secrets, listening sockets, and the processes a child would like to reach."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    for name in ("token", "secrets", ".env"):
        (data / name).write_text("a secret")
    with contextlib.ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        unix.bind(str(data / "socket"))
        unix.listen()
        abstract = stack.enter_context(socket.socket(socket.AF_UNIX))
        abstract.bind(f"\0docmill-test-{os.getpid()}")
        abstract.listen()
        datagram = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        datagram.bind(str(data / "datagram"))
        yield {
            "data": str(data),
            "checkout": str(Path(pipeline.__file__).parents[1]),
            "unix": str(data / "socket"),
            "abstract": f"docmill-test-{os.getpid()}",
            "datagram": str(data / "datagram"),
            "tcp": str(tcp.getsockname()[1]),
            "parent": str(os.getpid()),
            "server": str(sandbox.pid),
        }


def caller(client: SandboxClient, document: Path) -> Call:
    def call(
        job: str, *, timeout_s: float = 20.0, memory_bytes: int = 256 * MEBIBYTE, **arguments: Json
    ) -> SandboxReply | SandboxDeath:
        return client.call(job, document, arguments, timeout_s=timeout_s, memory_bytes=memory_bytes)

    return call


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def jobs_left(process: SandboxProcess) -> list[str]:
    return [directory.name for directory in (process.run_dir / "jobs").iterdir()]
