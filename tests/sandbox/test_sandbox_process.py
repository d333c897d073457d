"""The server's own life: started, killed, restarted, ended with its parent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pipeline.engines.sandbox.client import SandboxClient, SandboxDeath, SandboxReply
from pipeline.engines.sandbox.process import SandboxProcess, running_sandbox
from pipeline.errors import ConfigurationError, TransientError
from tests.sandbox.conftest import REGISTRY, caller, children_of, is_running, wait_until

PARENT = """
import sys, time
from pathlib import Path
from pipeline.engines.sandbox.process import SandboxProcess
sandbox = SandboxProcess.start(Path(sys.argv[1]), registry=sys.argv[2])
print(f"server {sandbox.pid}", flush=True)
sandbox.client().call("escape", Path(sys.argv[3]), {"then": "hang"}, timeout_s=60, memory_bytes=2**28)
"""

CLIENT = """
import sys
from pathlib import Path
from pipeline.engines.sandbox.client import SandboxClient
client = SandboxClient(Path(sys.argv[1]))
client.call("sleep", Path(sys.argv[2]), {"seconds": 60}, timeout_s=60, memory_bytes=2**28)
"""

POOL = """
import os, sys
from pathlib import Path
from pipeline.engines.sandbox.client import SandboxReply
from pipeline.engines.sandbox.process import running_sandbox
with running_sandbox(Path(sys.argv[1]), registry=sys.argv[2]) as sandbox:
    client = sandbox.client()
    for _ in range(3):
        if (pid := os.fork()) == 0:
            reply = client.call("echo", Path(sys.argv[3]), {}, timeout_s=20, memory_bytes=2**28)
            os._exit(0 if isinstance(reply, SandboxReply) else 2)
        assert os.waitpid(pid, 0)[1] == 0
    assert sandbox.ensure_alive() is False
"""


def test_a_killed_server_is_started_again_and_leaves_nothing(tmp_path: Path, document: Path) -> None:
    with running_sandbox(tmp_path / "run", registry=REGISTRY) as process:
        call = caller(process.client(), document)
        first = process.pid
        assert first is not None
        results: list[object] = []

        def outlive() -> None:
            try:
                results.append(call("escape", then="hang"))
            except TransientError as problem:
                results.append(problem)

        caller_thread = threading.Thread(target=outlive)
        caller_thread.start()
        assert wait_until(lambda: bool(_descendants(first)))
        time.sleep(0.3)
        left = _descendants(first)
        os.kill(first, signal.SIGKILL)
        caller_thread.join()

        assert isinstance(results[0], TransientError)
        assert wait_until(process.ensure_alive)
        assert process.pid != first
        assert len(left) >= 2
        assert wait_until(lambda: not any(is_running(pid) for pid in left))
        assert isinstance(call("echo"), SandboxReply)
        assert process.ensure_alive() is False


def test_without_a_server_a_call_is_transient(tmp_path: Path, document: Path) -> None:
    with pytest.raises(TransientError, match="not running"):
        caller(SandboxClient(tmp_path), document)("echo")


def test_the_server_and_its_children_end_with_the_parent(tmp_path: Path, document: Path) -> None:
    parent = _run(PARENT, tmp_path / "run", REGISTRY, document)
    assert parent.stdout is not None
    with parent.stdout as said:
        server = next(int(line.split()[1]) for line in said if line.startswith(b"server"))
        assert wait_until(lambda: len(_descendants(server)) >= 2)
        left = [server, *_descendants(server)]
        parent.kill()
        parent.wait()

    assert wait_until(lambda: not any(is_running(pid) for pid in left))


def test_a_client_that_dies_takes_its_child_along(tmp_path: Path, document: Path) -> None:
    with running_sandbox(tmp_path / "run", registry=REGISTRY) as process:
        server = process.pid
        assert server is not None
        client = _run(CLIENT, process.run_dir, document)
        assert wait_until(lambda: len(children_of(server)) == 1)
        job = children_of(server)[0]
        assert wait_until(lambda: Path(f"/proc/{job}/oom_score_adj").read_text() == "1000\n")
        client.kill()
        client.communicate()

        assert wait_until(lambda: children_of(server) == [])


def test_calls_work_from_forked_children(tmp_path: Path, document: Path) -> None:
    """Pool children are forked from the process that started the server."""
    pool = _run(POOL, tmp_path / "run", REGISTRY, document)
    said, _ = pool.communicate(timeout=60)

    assert pool.returncode == 0, said


def test_one_run_directory_has_one_server(tmp_path: Path) -> None:
    with (
        running_sandbox(tmp_path / "run", registry=REGISTRY),
        pytest.raises(ConfigurationError, match="another sandbox server"),
    ):
        SandboxProcess.start(tmp_path / "run", registry=REGISTRY)


def test_the_run_directory_is_private_and_may_have_a_long_path(tmp_path: Path, document: Path) -> None:
    run_dir = tmp_path / ("d" * 120) / "run"
    with running_sandbox(run_dir, registry=REGISTRY) as process:
        assert run_dir.stat().st_mode & 0o777 == 0o700
        assert isinstance(caller(process.client(), document)("echo"), SandboxReply)


def test_stop_ends_running_jobs(tmp_path: Path, document: Path) -> None:
    process = SandboxProcess.start(tmp_path / "run", registry=REGISTRY)
    server = process.pid
    assert server is not None
    outcome: list[SandboxReply | SandboxDeath | TransientError] = []

    def wait() -> None:
        try:
            outcome.append(caller(process.client(), document)("sleep", seconds=60, timeout_s=60))
        except TransientError as problem:
            outcome.append(problem)

    thread = threading.Thread(target=wait)
    thread.start()
    assert wait_until(lambda: len(children_of(server)) == 1)
    job = children_of(server)[0]
    process.stop()
    thread.join()

    assert isinstance(outcome[0], TransientError)
    assert not is_running(job)
    assert not is_running(server)


def _run(program: str, *arguments: object) -> subprocess.Popen[bytes]:
    """A Python program of its own: a fork of a test process would bring its threads' locks along."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])


def _descendants(pid: int) -> list[int]:
    try:
        direct = children_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [*direct, *(below for child in direct for below in _descendants(child))]
