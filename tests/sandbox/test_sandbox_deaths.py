"""How a child may end, and that nothing of it is left."""

from __future__ import annotations

import hashlib
import json
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline.engines.sandbox.client import DeathCause, SandboxClient, SandboxDeath, SandboxMisuse, SandboxReply
from pipeline.engines.sandbox.process import SandboxProcess
from pipeline.errors import Failure, FailureCode
from tests.sandbox.conftest import MEBIBYTE, Call, caller, children_of, is_running, jobs_left, wait_until


def died(result: SandboxReply | SandboxDeath) -> SandboxDeath:
    assert isinstance(result, SandboxDeath)
    return result


def answer(result: SandboxReply | SandboxDeath) -> Any:
    assert isinstance(result, SandboxReply), result
    return json.loads(result.output)


def failure_code(death: SandboxDeath) -> FailureCode:
    failure = death.failure()
    assert isinstance(failure, Failure)
    assert failure.died
    return failure.code


@pytest.fixture(autouse=True)
def _nothing_is_left(sandbox: SandboxProcess) -> object:
    """After every test the server lives, without children and without their directories."""
    pid = sandbox.pid
    assert pid is not None
    yield
    assert sandbox.ensure_alive() is False
    assert wait_until(lambda: children_of(pid) == [] and jobs_left(sandbox) == [])


def test_a_job_reads_the_document_and_its_arguments(call: Call, document: Path) -> None:
    said = answer(call("echo", languages=["eng"], page=3))

    assert said == {
        "sha256": hashlib.sha256(document.read_bytes()).hexdigest(),
        "arguments": {"languages": ["eng"], "page": 3},
    }


def test_a_large_answer_arrives_whole(call: Call) -> None:
    result = call("shout", bytes=8 * MEBIBYTE)

    assert isinstance(result, SandboxReply)
    assert result.output == b"x" * 8 * MEBIBYTE


def test_a_job_that_never_ends_is_killed_by_the_clock(call: Call) -> None:
    started = time.monotonic()
    death = died(call("sleep", timeout_s=0.5, seconds=60))

    assert death.cause is DeathCause.TIMED_OUT
    assert 0.5 <= time.monotonic() - started < 5
    assert failure_code(death) is FailureCode.TIMED_OUT
    assert "0.5 seconds" in death.failure().detail


def test_a_job_that_burns_processor_time_is_timed_out(call: Call) -> None:
    assert died(call("spin", timeout_s=0.6)).cause is DeathCause.TIMED_OUT


def test_allocating_without_bound_is_a_death_of_memory(call: Call) -> None:
    death = died(call("hoard", memory_bytes=128 * MEBIBYTE))

    assert death.cause is DeathCause.MEMORY
    assert 100 * MEBIBYTE < death.peak_bytes < 256 * MEBIBYTE
    assert failure_code(death) is FailureCode.TOO_LARGE
    assert "128 MiB" in death.failure().detail


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGILL", "SIGTRAP"])
def test_a_parser_that_crashes_is_a_crash(call: Call, name: str) -> None:
    death = died(call("fall", signal=name, mebibytes=1))

    assert (death.cause, death.signal) == (DeathCause.CRASHED, signal.Signals[name].value)
    assert failure_code(death) is FailureCode.CRASHED


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT"])
def test_an_abort_near_the_memory_limit_is_a_death_of_memory(call: Call, name: str) -> None:
    assert died(call("fall", signal=name, mebibytes=200)).cause is DeathCause.MEMORY


def test_an_exception_is_a_crash_that_tells_its_class_and_place_but_not_its_message(call: Call) -> None:
    death = died(call("blunder"))

    assert death.cause is DeathCause.CRASHED
    assert death.exception is not None
    assert death.exception.startswith("builtins.KeyError probes.py:")
    assert "document" not in death.exception


def test_output_over_the_cap_is_a_death(sandbox: SandboxProcess, document: Path) -> None:
    capped = caller(SandboxClient(sandbox.run_dir, max_output_bytes=MEBIBYTE), document)

    death = died(capped("shout", bytes=MEBIBYTE + 1))
    assert isinstance(capped("shout", bytes=MEBIBYTE), SandboxReply)

    assert death.cause is DeathCause.OUTPUT
    assert failure_code(death) is FailureCode.TOO_LARGE


def test_a_file_over_the_limit_cannot_be_written(call: Call) -> None:
    death = died(call("inflate_file", bytes=257 * MEBIBYTE))

    assert failure_code(death) is FailureCode.TOO_LARGE


def test_descriptors_are_limited(call: Call) -> None:
    held, why = answer(call("open_many"))

    assert 200 < held < 256
    assert why == "Too many open files"


def test_a_crash_leaves_a_concurrent_job_alone(call: Call) -> None:
    results: list[SandboxReply | SandboxDeath] = []
    slow = threading.Thread(target=lambda: results.append(call("sleep", seconds=1.0)))
    slow.start()
    time.sleep(0.3)
    crash = call("fall", signal="SIGSEGV", mebibytes=1)
    memory = call("hoard", memory_bytes=64 * MEBIBYTE)
    slow.join()

    assert died(crash).cause is DeathCause.CRASHED
    assert died(memory).cause is DeathCause.MEMORY
    assert isinstance(results[0], SandboxReply)


def test_many_calls_at_once_each_get_their_own_answer(call: Call) -> None:
    answers: dict[int, Any] = {}
    threads = [
        threading.Thread(target=lambda number=number: answers.update({number: answer(call("echo", number=number))}))
        for number in range(24)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert {number: said["arguments"]["number"] for number, said in answers.items()} == {
        number: number for number in range(24)
    }


@pytest.mark.parametrize("ending", ["return", "abort"])
def test_what_left_the_process_group_ends_with_the_job(call: Call, ending: str) -> None:
    """The stub forks, its child takes a session of its own, forks again and sleeps."""
    result = call("escape", then=ending)

    if ending == "return":
        leader, escaped = answer(result)
        assert not is_running(leader)
        assert not is_running(escaped)
    else:
        assert died(result).cause is DeathCause.CRASHED


def test_what_left_the_process_group_ends_with_a_timeout(call: Call, sandbox: SandboxProcess) -> None:
    assert sandbox.pid is not None
    seen: set[int] = set()
    watching = threading.Event()

    def watch() -> None:
        while not watching.wait(0.05):
            seen.update(grandchild for child in children_of(sandbox.pid or 0) for grandchild in _children(child))

    watcher = threading.Thread(target=watch)
    watcher.start()
    death = died(call("escape", then="hang", timeout_s=1.0))
    watching.set()
    watcher.join()

    assert death.cause is DeathCause.TIMED_OUT
    assert seen
    assert not any(is_running(pid) for pid in seen)


def test_an_escaped_process_of_one_job_does_not_cost_another_its_own(call: Call) -> None:
    """Orphans of a finished job are found while another job's stay where they are."""
    results: list[SandboxReply | SandboxDeath] = []
    other = threading.Thread(target=lambda: results.append(call("multiply", children=1, mebibytes=1, timeout_s=1.5)))
    other.start()
    time.sleep(0.5)
    for _ in range(3):
        assert isinstance(call("escape", then="return"), SandboxReply)
    other.join()

    assert died(results[0]).cause is DeathCause.TIMED_OUT


def test_programs_together_stay_under_the_memory_limit(call: Call) -> None:
    death = died(call("multiply", children=4, mebibytes=60, memory_bytes=128 * MEBIBYTE))

    assert death.cause is DeathCause.MEMORY


def test_a_job_may_not_start_processes_without_end(call: Call) -> None:
    assert died(call("multiply", children=100, mebibytes=0)).cause is DeathCause.CRASHED


def test_only_a_job_that_needs_programs_may_start_them(call: Call) -> None:
    assert answer(call("run_program")) == "hello\n"
    assert answer(call("run_no_program")) == "refused"


def test_an_unknown_job_is_a_bug_not_a_document_problem(call: Call) -> None:
    with pytest.raises(SandboxMisuse, match="there is no job"):
        call("not-a-job")
    with pytest.raises(SandboxMisuse, match="cannot be loaded"):
        call("missing")


def _children(pid: int) -> list[int]:
    try:
        return children_of(pid)
    except (FileNotFoundError, ProcessLookupError):
        return []
