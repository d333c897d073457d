"""``docmill up`` from outside: what it says, what it leaves behind, what it survives and what it refuses."""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import psycopg2
import pytest

from pipeline.entrypoints.embedded import account
from pipeline.entrypoints.embedded.services import EmbeddedServices
from tests.conftest import REPOSITORY

START_TIMEOUT_S = 90.0
ORDINARY_USER = 65534  # nobody: an account every system has and nobody owns anything with


@dataclass
class Stack:
    """One ``docmill up`` on ``data``."""

    data: Path
    process: subprocess.Popen[str]
    known: list[psutil.Process] = field(default_factory=list)

    @property
    def state(self) -> dict[str, dict[str, int]]:
        state: dict[str, dict[str, int]] = json.loads((self.data / "stack.json").read_text())
        return state

    def runs_again(self, name: str, instead_of: int) -> bool:
        return self.state["processes"].get(name, instead_of) != instead_of

    def wait_until_ready(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().strip()
        assert line.startswith("ready http://127.0.0.1:"), line + self.errors()
        self.look()
        return line.removeprefix("ready ")

    def look(self) -> None:
        """Remember every process below the stack, to ask after them later."""
        main = psutil.Process(self.process.pid)
        self.known += [main, *main.children(recursive=True)]

    def send(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)

    def left_over(self) -> list[str]:
        self.process.poll()  # our own child would stay a zombie
        return [f"{process.pid} {process}" for process in self.known if process.is_running()]

    def errors(self) -> str:
        assert self.process.stderr is not None
        return self.process.stderr.read()


Up = Callable[..., Stack]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Up]:
    """Starts stacks; whatever the test did, none is left when it ends."""
    started: list[Stack] = []

    def start(data: Path | None = None, enter: account.Enter | None = None, **options: object) -> Stack:
        data = data or tmp_path / "data"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.stack_driver", json.dumps({"data": str(data), **options})],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=enter,  # noqa: PLW1509 (one thread runs here)
        )
        started.append(Stack(data, process))
        return started[-1]

    yield start
    for stack in started:
        if stack.process.poll() is None:
            stack.process.terminate()
        stack.process.communicate(timeout=60)


def eventually(condition: Callable[[], bool], timeout_s: float) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def permissions(directories: list[Path]) -> dict[str, tuple[int, int, int]]:
    found = {str(directory): directory.stat() for directory in directories}
    return {name: (status.st_mode, status.st_uid, status.st_gid) for name, status in found.items()}


def test_the_whole_life(up: Up, tmp_path: Path) -> None:
    """Ready, private, a second one refused, everything restarted, nothing left, no permission outside changed."""
    data = tmp_path / "data"
    programs = Path(sys.prefix) / "bin" / "python"
    outside = [*data.parents, *programs.parents]
    before = permissions(outside)
    stack = up(ready_file=str(tmp_path / "ready"))
    url = stack.wait_until_ready()
    assert eventually((tmp_path / "ready").exists, 5)

    assert stat.S_IMODE((data / "token").stat().st_mode) == 0o600
    assert (data / "token").read_text() == "token for 32 letters\n"
    assert stat.S_IMODE((data / "stack.json").stat().st_mode) == 0o600
    for secret in (data / "secrets").iterdir():
        assert stat.S_IMODE(secret.stat().st_mode) == 0o600, secret
    for part in ("secrets", "run", "logs", "pg", "redis", "s3"):
        assert stat.S_IMODE((data / part).stat().st_mode) == 0o700, part
    socket_file = next((data / "run").glob(".s.PGSQL.*"))
    assert stat.S_ISSOCK(socket_file.stat().st_mode)
    listening = {
        address.laddr.ip
        for process in stack.known
        if process.is_running()
        for address in process.net_connections("tcp")
        if address.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}

    second = up(data)
    assert second.process.wait(30) == 1
    assert f"already running at {url}" in second.errors()

    for name, pid in stack.state["processes"].items():
        os.kill(pid, signal.SIGKILL)
        assert eventually(functools.partial(stack.runs_again, name, pid), 2.0), name
    services = EmbeddedServices(data, running=True)
    for server in services.servers:
        assert eventually(server.is_ready, 20), server.name
    stack.look()

    assert stack.send(signal.SIGTERM) == 0
    assert stack.left_over() == []
    assert not (data / "stack.json").exists()
    assert permissions(outside) == before
    if os.geteuid() == 0:
        uid = account.postgres_identity().uid
        foreign = {path.relative_to(data).parts[0] for path in data.rglob("*") if path.lstat().st_uid == uid}
        assert foreign == {"pg"}
    ports = json.loads((data / "ports.json").read_text())
    assert not list(Path("/tmp").glob(f"seaweedfs-*-{ports['volume.grpc']}.sock"))


@pytest.mark.parametrize("victim", ["pid", "supervisor"])
def test_nothing_survives_a_sigkill_but_the_data(up: Up, victim: str) -> None:
    """SIGKILL of the process the user started, and of the supervisor below it."""
    stack = up()
    stack.wait_until_ready()
    services = EmbeddedServices(stack.data, running=True)
    content = os.urandom(3_000_000)
    services.content_store().put("kept/object", io.BytesIO(content), len(content), "application/octet-stream")
    _sql(services, "CREATE TABLE public.kept AS SELECT 42 AS answer")
    _redis(services, b"SET kept 42\r\n")

    os.kill(int(str(stack.state[victim])), signal.SIGKILL)
    assert eventually(lambda: stack.left_over() == [], 20), stack.left_over()

    again = up()
    again.wait_until_ready()
    assert _sql(services, "SELECT answer FROM public.kept") == [(42,)]
    assert b"".join(services.content_store().read("kept/object")) == content
    assert b"$2\r\n42" in _redis(services, b"GET kept\r\n")
    assert again.send(signal.SIGINT) == 0
    assert again.left_over() == []


def _sql(services: EmbeddedServices, statement: str) -> list[tuple[int, ...]]:
    connection = psycopg2.connect(services.postgres.dsn("postgres"))
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if statement.startswith("SELECT") else []
    finally:
        connection.close()


def _redis(services: EmbeddedServices, command: bytes) -> bytes:
    password = services.redis.url.split(":")[2].split("@")[0]
    with socket.create_connection(("127.0.0.1", services.redis.port), 5) as connection:
        # everysec: what is a second old is on disk, and a kill of the process alone loses nothing.
        connection.sendall(f"AUTH {password}\r\n".encode() + command)
        time.sleep(0.2)
        return connection.recv(4096)


def test_an_ordinary_user_needs_no_account(up: Up, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("every other test of this file already runs as an ordinary user")
    # The interpreter may lie where only root may go.
    needed = (Path(sys.base_prefix), Path(sys.prefix), REPOSITORY)
    nobody = account.Identity(ORDINARY_USER, ORDINARY_USER)
    closed = account.closed_directories(needed, nobody)
    if closed and not account.can_cover():
        pytest.skip(f"an ordinary user may not pass {closed[0]}, and this system allows no private mounts")
    data = Path(f"/tmp/docmill-ordinary-{os.getpid()}")
    data.mkdir(mode=0o700)
    os.chown(data, ORDINARY_USER, ORDINARY_USER)
    try:
        stack = up(data, account.Enter(nobody, closed, needed))
        stack.wait_until_ready()
        assert {process.uids().real for process in stack.known} == {ORDINARY_USER}
        assert stack.send(signal.SIGTERM) == 0
        assert stack.left_over() == []
    finally:
        shutil.rmtree(data)


def test_a_stop_during_the_start_leaves_nothing(up: Up) -> None:
    stack = up()
    assert eventually((stack.data / "pg" / "PG_VERSION").exists, 30)
    stack.look()
    assert stack.send(signal.SIGTERM) == 0
    assert stack.left_over() == []
    assert "stopping" in stack.errors()


def test_a_port_that_was_asked_for_and_is_taken_is_refused(up: Up) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        stack = up(port=port)
        assert stack.process.wait(30) == 1
    assert f"error: port {port} on 127.0.0.1 is taken" in stack.errors()


def test_a_host_that_is_not_ours_is_refused(up: Up) -> None:
    stack = up(host="192.0.2.1")
    assert stack.process.wait(30) == 1
    assert "error: cannot listen on 192.0.2.1: it is no address of this machine" in stack.errors()


def test_a_setting_nobody_knows_is_refused_before_anything_starts(up: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_WORKERS_PROCESSES", "2")
    stack = up()
    assert stack.process.wait(30) == 1
    assert "error: DOCMILL_WORKERS_PROCESSES is not a setting" in stack.errors()
    assert not (stack.data / "pg").exists()


def test_a_process_that_always_dies_stops_the_stack(up: Up) -> None:
    stack = up(dying=True)
    assert eventually((stack.data / "stack.json").exists, START_TIMEOUT_S)
    stack.look()
    assert stack.process.wait(60) == 1
    assert "error: worker ended 5 times right after its start, the last time with exit code 7; see " in stack.errors()
    assert stack.left_over() == []


def test_data_of_another_major_version_is_refused_in_one_line(up: Up, tmp_path: Path) -> None:
    cluster = tmp_path / "data" / "pg"
    cluster.mkdir(parents=True, mode=0o700)
    (cluster / "PG_VERSION").write_text("15\n")
    if os.geteuid() == 0:
        identity = account.postgres_identity()
        os.chown(cluster, identity.uid, identity.gid)
    stack = up()
    assert stack.process.wait(30) == 1
    line = stack.errors().strip().splitlines()[-1]
    assert line.startswith(f"error: {cluster} holds data of Postgres 15, this is Postgres 18: choose an empty --data")


def test_a_directory_that_cannot_be_written_is_refused(up: Up) -> None:
    stack = up(Path("/proc/docmill"))
    assert stack.process.wait(30) == 1
    assert stack.errors().startswith("error: cannot write to /proc/docmill")
