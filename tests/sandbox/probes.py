"""Jobs that misbehave, and one that tries every way out. Only the tests' registry names them."""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from pipeline.engines.sandbox import jobs, kernel, syscalls
from pipeline.types import Json

MEBIBYTE = 1024 * 1024
Arguments = dict[str, Json]


def echo(content: BinaryIO, arguments: Arguments) -> bytes:
    return _json({"sha256": hashlib.sha256(content.read()).hexdigest(), "arguments": arguments})


def spin(content: BinaryIO, arguments: Arguments) -> bytes:
    while True:
        pass


def sleep(content: BinaryIO, arguments: Arguments) -> bytes:
    time.sleep(_number(arguments["seconds"]))
    return _json(os.getpid())


def hoard(content: BinaryIO, arguments: Arguments) -> bytes:
    held = []
    while True:
        held.append(bytearray(16 * MEBIBYTE))


def fall(content: BinaryIO, arguments: Arguments) -> bytes:
    """Touch ``mebibytes`` of memory, keep it for ``seconds``, then die by ``signal``."""
    held = bytearray(int(_number(arguments["mebibytes"])) * MEBIBYTE)
    time.sleep(_number(arguments.get("seconds", 0)))
    number = signal.Signals[str(arguments["signal"])]
    if number is signal.SIGSEGV:
        ctypes.string_at(0)
    os.kill(os.getpid(), number)
    return bytes(held[:1])


def blunder(content: BinaryIO, arguments: Arguments) -> bytes:
    raise KeyError(content.read().decode())


def shout(content: BinaryIO, arguments: Arguments) -> bytes:
    return b"x" * int(_number(arguments["bytes"]))


def inflate_file(content: BinaryIO, arguments: Arguments) -> bytes:
    with Path("big").open("wb") as file:
        file.truncate(int(_number(arguments["bytes"])))
    return b"null"


def open_many(content: BinaryIO, arguments: Arguments) -> bytes:
    held = []
    try:
        while True:
            held.append(os.open("/dev/null", os.O_RDONLY))
    except OSError as problem:
        return _json([len(held), os.strerror(problem.errno or 0)])


def surroundings(content: BinaryIO, arguments: Arguments) -> bytes:
    Path(tempfile.gettempdir(), "left-behind").write_text("x")
    Path("in-cwd").mkdir()
    descriptors = [number for number in range(64) if _is_open(number)]
    limits = [resource.getrlimit(which) for which in (resource.RLIMIT_CORE, resource.RLIMIT_CPU)]
    return _json({"environ": dict(os.environ), "cwd": str(Path.cwd()), "descriptors": descriptors, "limits": limits})


def escape(content: BinaryIO, arguments: Arguments) -> bytes:
    """Leave a grandchild in a session of its own that sleeps for an hour, then do as ``then`` says."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        os.write(writer, str(os.getpid()).encode())
        time.sleep(3600)
        os._exit(0)
    pids = [os.getpid(), int(os.read(reader, 32))]
    if arguments["then"] == "hang":
        os.write(4, _json(pids))
        time.sleep(3600)
    if arguments["then"] == "abort":
        os.write(4, _json(pids))
        os.abort()
    return _json(pids)


def multiply(content: BinaryIO, arguments: Arguments) -> bytes:
    """Start ``children`` sleepers that each hold ``mebibytes``, and wait for them."""
    for _ in range(int(_number(arguments["children"]))):
        if os.fork() == 0:
            held = bytearray(int(_number(arguments["mebibytes"])) * MEBIBYTE)
            time.sleep(3600)
            os._exit(len(held) % 2)
    time.sleep(3600)
    return b"null"


def run_program(content: BinaryIO, arguments: Arguments) -> bytes:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    try:
        done = subprocess.run(["/bin/echo", "hello"], capture_output=True, check=True)
    except PermissionError:
        return _json("refused")
    return _json(done.stdout.decode())


def reach(content: BinaryIO, arguments: Arguments) -> bytes:
    """Names of the ways out that worked; none should."""
    return _json(ways_out({name: str(value) for name, value in arguments.items()}))


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def ways_out(target: dict[str, str], only: Collection[str] | None = None) -> list[str]:
    """Try each way out, or ``only`` these; ``target`` names what the test has prepared to be reached."""
    attempts = _file_attempts(target) | _socket_attempts(target) | _process_attempts(target) | _kernel_attempts()
    worked = []
    for name, attempt in attempts.items():
        if only is not None and name not in only:
            continue
        try:
            attempt()
        except OSError:
            continue
        worked.append(name)
    return worked


def _file_attempts(target: dict[str, str]) -> dict[str, Callable[[], object]]:
    data = Path(target["data"])
    scratch = Path(tempfile.mkdtemp())

    def read_through_link() -> None:
        link = scratch / "link"
        link.symlink_to(data / "token")
        link.read_text()

    def find_other_job() -> None:
        if [path.name for path in scratch.parents[1].iterdir()] == [scratch.parent.name]:
            raise FileNotFoundError

    def run_own_program() -> None:
        program = scratch / "program"
        with program.open("wb") as file:
            file.write(Path("/bin/true").read_bytes())
            os.fchmod(file.fileno(), 0o700)
        subprocess.run([str(program)], check=False)

    return {
        "read the token": (data / "token").read_text,
        "read the secrets": (data / "secrets").read_text,
        "read .env": (data / ".env").read_text,
        "list the data directory": lambda: list(data.iterdir()),
        "write the token": lambda: (data / "token").write_text("mine"),
        "truncate the token": lambda: os.truncate(data / "token", 0),
        "open the token to others": lambda: (data / "token").chmod(0o666),
        "give the token away": lambda: os.chown(data / "token", os.getuid(), os.getgid()),
        "mark the token": lambda: os.setxattr(data / "token", "user.mine", b"1"),
        "move the token": lambda: (data / "token").rename(scratch / "token"),
        "link the token": lambda: os.link(data / "token", scratch / "token"),
        "remove the token": (data / "token").unlink,
        "make a file beside it": (data / "new").touch,
        "read through a link": read_through_link,
        "read another job's directory": find_other_job,
        "read /etc/passwd": Path("/etc/passwd").read_text,
        "read the checkout": Path(target["checkout"], "pyproject.toml").read_text,
        "write the interpreter": Path(sys.prefix, "written").touch,
        "write the project": Path(kernel.__file__).with_name("written.py").touch,
        "reopen the document for writing": lambda: os.open("/proc/self/fd/3", os.O_WRONLY),
        "write through the document": lambda: os.write(3, b"x"),
        "run a program of its own": run_own_program,
    }


def _socket_attempts(target: dict[str, str]) -> dict[str, Callable[[], object]]:
    def connect(family: int, address: tuple[str, int] | str) -> Callable[[], None]:
        def attempt() -> None:
            with socket.socket(family, socket.SOCK_STREAM) as connection:
                connection.connect(address)

        return attempt

    def send_by_pair() -> None:
        one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        one.sendto(b"x", target["datagram"])

    return {
        "connect to a unix socket": connect(socket.AF_UNIX, target["unix"]),
        "connect to an abstract socket": connect(socket.AF_UNIX, "\0" + target["abstract"]),
        "connect by TCP": connect(socket.AF_INET, ("127.0.0.1", int(target["tcp"]))),
        "connect by TCP over IPv6": connect(socket.AF_INET6, ("::1", int(target["tcp"]))),
        "make a UDP socket": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
        "make a netlink socket": lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),
        "send to a unix socket through a pair": send_by_pair,
    }


def _process_attempts(target: dict[str, str]) -> dict[str, Callable[[], object]]:
    return _attempts_on("parent", int(target["parent"])) | _attempts_on("server", int(target["server"]))


def _attempts_on(who: str, pid: int) -> dict[str, Callable[[], object]]:
    there = Path("/proc", str(pid))
    return {
        f"read the {who}'s environment": (there / "environ").read_bytes,
        f"read the {who}'s memory": (there / "mem").open,
        f"read the {who}'s command line": (there / "cmdline").read_bytes,
        f"list the {who}'s descriptors": lambda: list((there / "fd").iterdir()),
        f"signal the {who}": lambda: os.kill(pid, 0),
        f"signal the {who}'s thread": lambda: _syscall(syscalls.TGKILL, pid, pid, 0),
        f"signal the {who} by pidfd": lambda: os.pidfd_open(pid),
        f"trace the {who}": lambda: _libc_call("ptrace", 16, pid, 0, 0),
        f"copy the {who}'s memory": lambda: _libc_call("process_vm_readv", pid, 0, 0, 0, 0, 0),
        f"limit the {who}": lambda: resource.prlimit(pid, resource.RLIMIT_CPU),
        f"slow the {who}": lambda: os.setpriority(os.PRIO_PROCESS, pid, 19),
    }


def _kernel_attempts() -> dict[str, Callable[[], object]]:
    return {
        "leave the user namespace": lambda: _libc_call("unshare", 0x10000000),
        "leave the network namespace": lambda: _libc_call("unshare", 0x40000000),
        "mount": lambda: _libc_call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
        "change root": lambda: os.chroot("/"),
        "share memory by key": lambda: _libc_call("shmget", 0x1234, 4096, 0o1600),
        "make a ring": lambda: _syscall(syscalls.DENIED["io_uring_setup"], 8, 0),
        "load a program into the kernel": lambda: _syscall(syscalls.DENIED["bpf"], 0, 0, 0),
        "make a device": lambda: os.mknod("device", 0o20666, os.makedev(1, 3)),
        "make a socket file": lambda: os.mknod("socket-file", 0o140666),
        "set the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
        "watch a directory": lambda: _libc_call("inotify_add_watch", _libc_call("inotify_init1", 0), b"/root", 0xFFF),
    }


_libc = ctypes.CDLL(None, use_errno=True)


def _libc_call(name: str, *arguments: object) -> int:
    result = int(getattr(_libc, name)(*arguments))
    if result == -1:
        raise OSError(ctypes.get_errno(), name)
    return result


def _syscall(numbers: syscalls.Numbers, *arguments: int) -> int:
    number = numbers[0 if kernel.machine() == "x86_64" else 1]
    assert number is not None
    return kernel.syscall(number, *(ctypes.c_long(argument) for argument in arguments))


def _number(value: Json) -> float:
    assert isinstance(value, int | float)
    return value


def _json(value: object) -> bytes:
    return json.dumps(value).encode()


def _probe(function: Callable[[BinaryIO, Arguments], bytes], *, programs: bool = False) -> jobs.Job:
    return jobs.Job(f"{__name__}:{function.__name__}", programs=programs)


JOBS: MappingProxyType[str, jobs.Job] = MappingProxyType(
    {
        jobs.CHECK: jobs.JOBS[jobs.CHECK],
        "echo": _probe(echo),
        "spin": _probe(spin),
        "sleep": _probe(sleep),
        "hoard": _probe(hoard),
        "fall": _probe(fall),
        "blunder": _probe(blunder),
        "shout": _probe(shout),
        "inflate_file": _probe(inflate_file),
        "open_many": _probe(open_many),
        "surroundings": _probe(surroundings),
        "escape": _probe(escape, programs=True),
        "multiply": _probe(multiply, programs=True),
        "run_program": _probe(run_program, programs=True),
        "run_no_program": _probe(run_program),
        "reach": _probe(reach),
        "reach_with_programs": _probe(reach, programs=True),
        "missing": jobs.Job("tests.sandbox.probes:not_there"),
    }
)
