"""The fallback for kernels without Landlock: as tight, and as sure to end."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.engines.sandbox import bubblewrap, isolation, landlock
from pipeline.engines.sandbox.client import DeathCause, SandboxDeath, SandboxReply
from pipeline.engines.sandbox.process import SandboxProcess, running_sandbox
from pipeline.errors import ConfigurationError
from tests.sandbox.conftest import MEBIBYTE, REGISTRY, Call, children_of, jobs_left, wait_until


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    if not bubblewrap.works(isolation.readable_paths()):
        pytest.skip("bubblewrap is not installed, or may not make namespaces here")
    run_dir = tmp_path_factory.mktemp("sandbox") / "run"
    with running_sandbox(run_dir, registry=REGISTRY, mechanism=isolation.Mechanism.BUBBLEWRAP) as process:
        yield process


def test_start_says_so(sandbox: SandboxProcess) -> None:
    assert sandbox.isolation.mechanism is isolation.Mechanism.BUBBLEWRAP


@pytest.mark.parametrize(
    ("job", "allowed"),
    [("reach", []), ("reach_with_programs", ["run a program of its own"])],
)
def test_no_way_out_works(call: Call, target: dict[str, str], job: str, allowed: list[str]) -> None:
    """A job that may start programs may start one it brought along: it is as confined as the job."""
    result = call(job, **target)

    assert isinstance(result, SandboxReply), result
    assert json.loads(result.output) == allowed
    assert Path(target["data"], "token").read_text() == "a secret"


@pytest.mark.parametrize(
    ("job", "arguments", "cause", "number"),
    [
        ("sleep", {"seconds": 60, "timeout_s": 1.0}, DeathCause.TIMED_OUT, signal.SIGKILL),
        ("hoard", {}, DeathCause.MEMORY, None),
        ("fall", {"signal": "SIGSEGV", "mebibytes": 1}, DeathCause.CRASHED, signal.SIGSEGV),
        ("fall", {"signal": "SIGABRT", "mebibytes": 200, "seconds": 0.6}, DeathCause.MEMORY, signal.SIGABRT),
        ("inflate_file", {"bytes": 257 * MEBIBYTE}, DeathCause.OUTPUT, None),
        ("escape", {"then": "abort"}, DeathCause.CRASHED, signal.SIGABRT),
    ],
)
def test_deaths_are_told_apart(
    call: Call, sandbox: SandboxProcess, job: str, arguments: dict[str, float], cause: DeathCause, number: int | None
) -> None:
    death = call(job, **arguments)

    assert isinstance(death, SandboxDeath)
    assert (death.cause, death.signal) == (cause, number)
    assert sandbox.pid is not None
    assert children_of(sandbox.pid) == []
    assert wait_until(lambda: jobs_left(sandbox) == [])


def test_only_a_job_that_needs_programs_may_start_them(call: Call) -> None:
    answers = [call("run_program"), call("run_no_program")]

    assert [json.loads(answer.output) for answer in answers if isinstance(answer, SandboxReply)] == [
        "hello\n",
        "refused",
    ]


def test_without_any_mechanism_the_start_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "abi", lambda: 0)
    monkeypatch.setattr(bubblewrap, "PROGRAM", "no-such-program")

    with pytest.raises(ConfigurationError, match=r"Landlock .* or install bubblewrap"):
        isolation.detect()
