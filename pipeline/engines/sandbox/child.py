"""What happens in the forked child: limits, confinement, then the job."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil
from pathlib import Path
from typing import BinaryIO, NoReturn

from pipeline.engines.sandbox import kernel, wire
from pipeline.types import Json

JobFunction = Callable[[BinaryIO, "dict[str, Json]"], bytes]

EXIT_DONE = 0
EXIT_MEMORY = 10
EXIT_CRASHED = 11
EXIT_FILE_SIZE = 12
EXIT_DISK_FULL = 13
EXIT_UNCONFINED = 14
_EXIT_BY_ERRNO = {errno.EFBIG: EXIT_FILE_SIZE, errno.ENOSPC: EXIT_DISK_FULL, errno.ENOMEM: EXIT_MEMORY}

# A page of 40 million pixels is 120 MB as RGB; nothing a job writes for a program to read is larger than two.
MAX_FILE_BYTES = 256 * 1024 * 1024
MAX_OPEN_FILES = 256
# Too small for a core file, and the one value at which the kernel does not call a core handler either (0 still
# does): a dump would carry the document out.
NO_CORE_BYTES = 1
# Processes this user may have beyond those of the whole machine; not counted for root.
MORE_PROCESSES = 64

CONTENT, OUTPUT, STATUS = 3, 4, 5
_FIRST_OTHER = 6
# Where descriptors are parked while 3, 4 and 5 are being taken.
_PARKING = 64
MAX_STATUS_BYTES = 200


@dataclass(frozen=True, slots=True)
class Assignment:
    """All a child needs: its work and how to be confined, its limits, its descriptors as the server holds them."""

    work: Callable[[BinaryIO], bytes]
    confine: Callable[[], None]
    request: wire.Request
    scratch: Path
    content: int
    output: int
    status: int
    server_pid: int
    baseline_bytes: int


def run(assignment: Assignment) -> NoReturn:
    """Become the child: leave the server behind, take the limits, be confined, do the job."""
    conclude(partial(_prepare, assignment))


def conclude(prepare: Callable[[], Callable[[BinaryIO], bytes]]) -> NoReturn:
    """Do the work that ``prepare`` returns, and end this process whatever is raised; the exit code says how."""
    confined = False
    code = EXIT_CRASHED
    try:
        work = prepare()
        confined = True
        with os.fdopen(CONTENT, "rb") as content:
            result = work(content)
        _write(OUTPUT, result)
    finally:
        # Nothing of a child may run on as a second server.
        try:
            problem = sys.exc_info()[1]
            code = _exit_code(problem, confined=confined)
            if problem is not None:
                _tell(problem)
        finally:
            os._exit(code)


def _prepare(assignment: Assignment) -> Callable[[BinaryIO], bytes]:
    _leave_server(assignment)
    _limit(assignment.request, assignment.baseline_bytes)
    assignment.confine()
    return assignment.work


def _exit_code(problem: BaseException | None, *, confined: bool) -> int:
    match problem:
        case None:
            return EXIT_DONE
        case _ if not confined:
            return EXIT_UNCONFINED
        case MemoryError():
            return EXIT_MEMORY
        case OSError():
            return _EXIT_BY_ERRNO.get(problem.errno or 0, EXIT_CRASHED)
        case _:
            return EXIT_CRASHED


def _leave_server(assignment: Assignment) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.setsid()
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != assignment.server_pid:
        os._exit(EXIT_UNCONFINED)
    # A descendant that leaves the process group comes back to this child, and to the server only after it:
    # so every stranger the server finds among its children belongs to a job that is over.
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    # Should the machine run out of memory, this child goes first, and not the database.
    Path("/proc/self/oom_score_adj").write_text("1000")
    _take_descriptors(assignment)
    os.chdir(assignment.scratch)
    scratch = str(assignment.scratch)
    os.environ.update(TMPDIR=scratch, HOME=scratch)
    tempfile.tempdir = scratch


def _take_descriptors(assignment: Assignment) -> None:
    held = (assignment.content, assignment.output, assignment.status)
    parked = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _PARKING) for descriptor in held]
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        os.dup2(null, standard)
    for place, descriptor in zip((CONTENT, OUTPUT, STATUS), parked, strict=True):
        os.dup2(descriptor, place, inheritable=False)
    os.closerange(_FIRST_OTHER, os.sysconf("SC_OPEN_MAX"))


def _limit(request: wire.Request, baseline_bytes: int) -> None:
    cpu_s = ceil(request.timeout_s)
    _set_limit(resource.RLIMIT_DATA, baseline_bytes + request.memory_bytes)
    # At the hard limit the kernel kills without saying why; one second less and it says SIGXCPU.
    _set_limit(resource.RLIMIT_CPU, cpu_s, cpu_s + 1)
    _set_limit(resource.RLIMIT_FSIZE, MAX_FILE_BYTES)
    _set_limit(resource.RLIMIT_NOFILE, MAX_OPEN_FILES)
    _set_limit(resource.RLIMIT_CORE, NO_CORE_BYTES)
    _set_limit(resource.RLIMIT_MEMLOCK, 0)
    if os.geteuid() != 0:
        _set_limit(resource.RLIMIT_NPROC, _tasks_of_the_machine() + MORE_PROCESSES)


def _set_limit(limit: int, soft: int, hard: int | None = None) -> None:
    _, current = resource.getrlimit(limit)
    ceiling = soft if hard is None else hard
    if current != resource.RLIM_INFINITY:
        ceiling = min(ceiling, current)
    resource.setrlimit(limit, (min(soft, ceiling), ceiling))


def _tasks_of_the_machine() -> int:
    return int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _tell(problem: BaseException) -> None:
    """Class and place of what left the job; the message may quote the document and stays here."""
    kind = type(problem)
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    _write(STATUS, f"{kind.__module__}.{kind.__qualname__}{place}".encode()[:MAX_STATUS_BYTES])
