"""The system call filter, run instruction by instruction: also for the machine this is not."""

from __future__ import annotations

import errno
import signal
import socket
import struct

import pytest

from pipeline.engines.sandbox import seccomp, syscalls

ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
DENY = ERRNO | errno.EPERM
NOT_IMPLEMENTED = ERRNO | errno.ENOSYS
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CLONE_THREAD, CLONE_NEWUSER, CLONE_NEWNET = 0x10000, 0x10000000, 0x40000000
OWN_PID = 4321


def judge(code: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What a classic BPF program says to one call, by the rules of bpf(4)."""
    padded = (*arguments, *([0] * (6 - len(arguments))))
    data = struct.pack("=IIQ6Q", number, architecture, 0, *padded)
    program = list(struct.iter_unpack("=HBBI", code))
    accumulator = at = 0
    while True:
        operation, when_true, when_false, operand = program[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                accumulator &= operand
            case 0x06:
                return int(operand)
            case 0x15 | 0x35 | 0x45:
                holds = {0x15: accumulator == operand, 0x35: accumulator >= operand, 0x45: accumulator & operand}
                at += when_true if holds[operation] else when_false
            case _:
                pytest.fail(f"unknown instruction {operation:#x}")


@pytest.fixture(params=sorted(ARCHITECTURES))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def number_of(numbers: syscalls.Numbers, machine: str) -> int:
    number = numbers[0 if machine == "x86_64" else 1]
    assert number is not None
    return number


def compiled(machine: str, *, programs: bool = False, signals: bool = True) -> bytes:
    return seccomp.compile_filter(machine, programs=programs, signals=signals, own_pid=OWN_PID)


def test_every_listed_call_is_denied(machine: str) -> None:
    code = compiled(machine, programs=True)
    column = 0 if machine == "x86_64" else 1

    for name, numbers in syscalls.DENIED.items():
        if numbers[column] is not None:
            assert judge(code, ARCHITECTURES[machine], number_of(numbers, machine)) == DENY, name


def test_ordinary_calls_are_allowed(machine: str) -> None:
    read, openat, mmap, exit_group = {"x86_64": (0, 257, 9, 231), "aarch64": (63, 56, 222, 94)}[machine]

    for number in (read, openat, mmap, exit_group):
        assert judge(compiled(machine), ARCHITECTURES[machine], number) == ALLOW


def test_programs_may_be_started_only_when_the_job_needs_them(machine: str) -> None:
    without, with_programs = compiled(machine), compiled(machine, programs=True)
    execve = number_of(syscalls.PROGRAMS["execve"], machine)
    clone = number_of(syscalls.CLONE, machine)
    architecture = ARCHITECTURES[machine]

    assert judge(without, architecture, execve) == DENY
    assert judge(with_programs, architecture, execve) == ALLOW
    assert judge(without, architecture, clone, signal.SIGCHLD) == DENY
    assert judge(with_programs, architecture, clone, signal.SIGCHLD) == ALLOW
    assert judge(without, architecture, clone, CLONE_THREAD | 0xF00) == ALLOW


@pytest.mark.parametrize("programs", [True, False])
def test_no_thread_or_process_gets_a_namespace(machine: str, programs: bool) -> None:
    code = compiled(machine, programs=programs)
    clone = number_of(syscalls.CLONE, machine)

    for flags in (CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWUSER | CLONE_THREAD):
        assert judge(code, ARCHITECTURES[machine], clone, flags | signal.SIGCHLD) == DENY
    assert judge(code, ARCHITECTURES[machine], number_of(syscalls.CLONE3, machine)) == NOT_IMPLEMENTED


def test_limits_may_be_set_only_for_oneself(machine: str) -> None:
    prlimit = number_of(syscalls.PRLIMIT, machine)

    assert judge(compiled(machine), ARCHITECTURES[machine], prlimit, 0, 7) == ALLOW
    assert judge(compiled(machine), ARCHITECTURES[machine], prlimit, 1, 7) == DENY


def test_only_a_stream_pair_is_made(machine: str) -> None:
    pair = number_of(syscalls.SOCKETPAIR, machine)
    flags = socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK

    for kind, verdict in ((socket.SOCK_STREAM, ALLOW), (socket.SOCK_DGRAM, DENY), (socket.SOCK_SEQPACKET, DENY)):
        assert judge(compiled(machine), ARCHITECTURES[machine], pair, socket.AF_UNIX, kind | flags) == verdict


def test_signals_are_guarded_where_landlock_does_not(machine: str) -> None:
    kill, tgkill = number_of(syscalls.SIGNALS["kill"], machine), number_of(syscalls.TGKILL, machine)
    guarded, free = compiled(machine, signals=False), compiled(machine, signals=True)
    architecture = ARCHITECTURES[machine]

    assert judge(guarded, architecture, kill, OWN_PID, signal.SIGTERM) == DENY
    assert judge(guarded, architecture, tgkill, OWN_PID, OWN_PID, signal.SIGABRT) == ALLOW
    assert judge(guarded, architecture, tgkill, 1, 1, signal.SIGKILL) == DENY
    assert judge(free, architecture, kill, OWN_PID, signal.SIGTERM) == ALLOW


def test_foreign_and_unknown_calls_are_refused(machine: str) -> None:
    code = compiled(machine)
    other = next(architecture for name, architecture in ARCHITECTURES.items() if name != machine)

    assert judge(code, other, 0) == KILL
    assert judge(code, ARCHITECTURES[machine], syscalls.UNKNOWN_FROM) == NOT_IMPLEMENTED
    if machine == "x86_64":
        assert judge(code, ARCHITECTURES[machine], 0x40000000 | 41) == KILL
