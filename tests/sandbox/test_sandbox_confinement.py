"""What a child can reach: nothing but its document and its own directory."""

from __future__ import annotations

import json
import os
import tempfile
import threading
from pathlib import Path

import pytest

import pipeline
from pipeline.engines.sandbox import isolation, landlock
from pipeline.engines.sandbox.client import SandboxReply
from pipeline.engines.sandbox.process import SandboxProcess
from pipeline.errors import ConfigurationError
from tests.sandbox import probes
from tests.sandbox.conftest import REGISTRY, Call, caller

# The ways out that may be tried without a sandbox: they change nothing beyond the test's own directory.
HARMLESS = frozenset(
    {
        "read the token",
        "list the data directory",
        "open the token to others",
        "read the checkout",
        "connect to a unix socket",
        "connect to an abstract socket",
        "connect by TCP",
        "send to a unix socket through a pair",
        "read the parent's environment",
        "read the parent's command line",
        "signal the parent",
        "signal the server",
        "signal the server by pidfd",
        "limit the parent",
        "run a program of its own",
    }
)


@pytest.mark.parametrize("job", ["reach", "reach_with_programs"])
def test_no_way_out_works(call: Call, target: dict[str, str], job: str) -> None:
    result = call(job, **target)

    assert isinstance(result, SandboxReply), result
    assert json.loads(result.output) == []
    assert Path(target["data"], "token").read_text() == "a secret"


@pytest.mark.parametrize("version", range(1, 8))
def test_no_way_out_works_on_older_kernels(tmp_path: Path, target: dict[str, str], version: int) -> None:
    """The same with what an older Landlock knows; the filter makes up for the rest."""
    if version > landlock.abi():
        pytest.skip(f"this kernel's Landlock is older than version {version}")
    how = isolation.Isolation(isolation.Mechanism.LANDLOCK, version, network=True, filesystem=True)
    scratch = tmp_path / "jobs" / "one"
    scratch.mkdir(parents=True)

    assert _confined(how, scratch, target) == []


def test_the_ways_out_are_real(tmp_path: Path, target: dict[str, str]) -> None:
    """Unconfined they work: the tests above do not pass for want of something to find."""
    scratch = tmp_path / "jobs" / "one"
    scratch.mkdir(parents=True)

    worked = _confined(None, scratch, target, only=HARMLESS)

    assert set(worked) == HARMLESS


def _confined(
    how: isolation.Isolation | None, scratch: Path, target: dict[str, str], only: frozenset[str] | None = None
) -> list[str]:
    """The ways out that work in a forked child confined as ``how`` says."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.dup2(os.open(__file__, os.O_RDONLY), 3)
            os.chdir(scratch)
            tempfile.tempdir = str(scratch)
            if how is not None:
                isolation.confine(how, probes.JOBS["reach"], {}, scratch)
            os.write(writer, json.dumps(probes.ways_out(target, only)).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as said:
        text = said.read()
    os.waitpid(pid, 0)
    worked = json.loads(text)
    assert isinstance(worked, list)
    return worked


def test_a_child_sees_no_credential_and_only_its_own_directory(
    tmp_path: Path, document: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCMILL_JWT_SECRET", "hush")
    monkeypatch.setenv("OPENAI_API_KEY", "hush")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    process = SandboxProcess.start(tmp_path / "run", registry=REGISTRY)
    try:
        result = caller(process.client(), document)("surroundings", timeout_s=7)
        server_environment = Path(f"/proc/{process.pid}/environ").read_text()
    finally:
        process.stop()

    assert isinstance(result, SandboxReply), result
    seen = json.loads(result.output)
    assert "hush" not in json.dumps(seen) + server_environment
    assert seen["environ"]["OMP_THREAD_LIMIT"] == "1"
    assert seen["environ"]["TMPDIR"] == seen["environ"]["HOME"] == seen["cwd"]
    assert Path(seen["cwd"]).parent == process.run_dir / "jobs"
    assert not Path(seen["cwd"]).exists()
    assert seen["descriptors"] == [0, 1, 2, 3, 4, 5]
    assert seen["limits"] == [[1, 1], [7, 8]]


def test_a_data_directory_that_parsers_may_read_is_refused() -> None:
    inside = Path(pipeline.__file__).parent / "data"

    with pytest.raises(ConfigurationError, match="may not lie inside"):
        isolation.refuse_exposed(inside)
    isolation.refuse_exposed(inside.parents[1] / ".docmill")


def test_start_says_how_children_are_confined(sandbox: SandboxProcess) -> None:
    how = sandbox.isolation

    assert how.network
    assert how.filesystem
    assert how.version == landlock.abi()


def test_threads_of_a_client_process_do_not_matter(call: Call) -> None:
    results: list[object] = []
    thread = threading.Thread(target=lambda: results.append(call("echo")))
    thread.start()
    thread.join()

    assert isinstance(results[0], SandboxReply)
