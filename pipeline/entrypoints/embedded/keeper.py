"""Nothing outlives the stack, whatever ends it.

The process the user started becomes the keeper: it starts the supervisor as its child, passes signals on to it,
inherits every orphan below it, and kills what is left when the supervisor is gone. If the keeper itself is killed, the
kernel tells the supervisor, which stops everything in order and takes the orphans of that with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from pipeline.entrypoints.embedded.process import die_with_parent

_PR_SET_CHILD_SUBREAPER = 36
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# What a fast shutdown of Postgres may take when the supervisor was killed and the kernel told the server.
_ORPHAN_GRACE_S = 5.0
_POLL_S = 0.1


def keep(supervise: Callable[[], int]) -> int:
    """Run ``supervise`` in a child; return its exit code (1 when it was killed) once nothing below us is left."""
    adopt_orphans()
    sys.stdout.flush()
    sys.stderr.flush()
    keeper = os.getpid()
    # Held back over the fork, so that none arrives before either side can act on it.
    signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED_ON)
    supervisor = os.fork()
    if supervisor == 0:
        _become_supervisor(keeper, supervise)
    for passed in _PASSED_ON:
        signal.signal(passed, lambda number, _: _send(supervisor, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
    status = _wait_for(supervisor)
    if os.WIFEXITED(status):
        end_descendants(0.0)
        return os.WEXITSTATUS(status)
    end_descendants(_ORPHAN_GRACE_S)
    return 1


def adopt_orphans() -> None:
    """From now on whatever loses its parent below this process becomes its child."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def end_descendants(grace_s: float) -> None:
    """Give our children time to leave, then kill them; their own children are adopted and follow."""
    deadline = time.monotonic() + grace_s
    while children := _children():
        if time.monotonic() >= deadline:
            for pid in children:
                _send(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        time.sleep(_POLL_S)


def _become_supervisor(keeper: int, supervise: Callable[[], int]) -> None:
    """In the child; never returns. Its own session, so that a terminal's Ctrl-C comes once, through the keeper."""
    os.setsid()
    code = 1
    try:
        for passed in _PASSED_ON:
            signal.signal(passed, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _PASSED_ON)
        die_with_parent(keeper, signal.SIGTERM)
        code = supervise()
    except BaseException:  # noqa: BLE001 (the edge of this process: nothing above could report it)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _send(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return


def _wait_for(supervisor: int) -> int:
    """The supervisor's wait status. Meanwhile orphans are collected, and killed when they linger."""
    seen: dict[int, float] = {}
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == supervisor:
            return status
        if ended == 0:
            seen = _kill_lingering(supervisor, seen)
            time.sleep(_POLL_S)


def _kill_lingering(supervisor: int, seen: dict[int, float]) -> dict[int, float]:
    """Kill adopted processes first seen longer ago than the grace time; return when each was first seen."""
    now = time.monotonic()
    orphans = {pid: seen.get(pid, now) for pid in _children() if pid != supervisor}
    for pid, since in orphans.items():
        if now - since > _ORPHAN_GRACE_S:
            _send(pid, signal.SIGKILL)
    return orphans


def _children() -> list[int]:
    """Our direct children, dead ones included."""
    return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
