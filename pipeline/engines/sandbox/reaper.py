"""Ending process groups, and finding what tried to leave them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Container
from pathlib import Path

_PROC = Path("/proc")


def kill_group(leader: int) -> None:
    """SIGKILL to the group; the leader must not have been waited for, so that its number is still its own."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def kill_adopted(live: Container[int]) -> int:
    """SIGKILL, and collect once dead, every child of this process that leads no live job.

    Those are descendants of jobs that are over, come here to die. Returns how many were seen; what a killed
    one leaves behind comes here next, so only 0 means that nothing is left.
    """
    strangers = [pid for pid in children(os.getpid()) if pid not in live]
    for pid in strangers:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    return len(strangers)


def children(pid: int) -> list[int]:
    """Direct children of a single-threaded process, zombies too."""
    try:
        listed = Path(_PROC, str(pid), "task", str(pid), "children").read_text()
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [other for other in _processes() if _parent(other) == pid]
    return [int(child) for child in listed.split()]


def descendants(pid: int) -> list[int]:
    """Everything below a process, as far as one look can tell."""
    found: list[int] = []
    level = _children_of_any(pid)
    while level:
        found += level
        level = [grandchild for child in level for grandchild in _children_of_any(child)]
    return found


def resident_bytes(pid: int) -> int:
    """Resident set of a process, 0 when it is gone."""
    try:
        return int(Path(_PROC, str(pid), "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (FileNotFoundError, ProcessLookupError):
        return 0


def proportional_bytes(pid: int) -> int:
    """Resident set with shared pages divided among those who share them, 0 when the process is gone."""
    try:
        lines = Path(_PROC, str(pid), "smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def data_bytes(pid: int) -> int:
    """What RLIMIT_DATA counts of a process: its private writable memory."""
    for line in Path(_PROC, str(pid), "status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    return 0


def kill_inside(directory: Path) -> int:
    """SIGKILL every process whose working directory is inside ``directory``: what a dead server left behind."""
    killed = 0
    for pid in _processes():
        try:
            where = Path(_PROC, str(pid), "cwd").readlink()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        if pid != os.getpid() and where.is_relative_to(directory):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                killed += 1
    return killed


def remove_tree(directory: Path) -> None:
    """Remove a directory that nothing runs in any more, whatever permissions were left in it."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        for parent, names, _ in os.walk(directory):
            for path in (Path(parent, name) for name in names):
                if not path.is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(directory, ignore_errors=True)


def _children_of_any(pid: int) -> list[int]:
    found: list[int] = []
    for listing in Path(_PROC, str(pid), "task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found += [int(child) for child in listing.read_text().split()]
    return found


def _processes() -> list[int]:
    return [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal()]


def _parent(pid: int) -> int:
    try:
        return int(Path(_PROC, str(pid), "stat").read_text().rpartition(")")[2].split()[1])
    except (FileNotFoundError, ProcessLookupError):
        return 0
