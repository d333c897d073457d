"""The file system a child sees where the kernel has no Landlock: bubblewrap's mounts, and a fresh interpreter.

Slower, because a program started in new namespaces inherits no imported parser; no less tight.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import BinaryIO, NoReturn

from pipeline.engines.sandbox import child, kernel, seccomp
from pipeline.engines.sandbox.jobs import Job
from pipeline.types import Json

PROGRAM = "bwrap"
TRIAL_TIMEOUT_S = 10.0
# Beside the three descriptors of every child: what it is to do, as JSON.
ORDERS = 6


def works(readable: Iterable[Path]) -> bool:
    """Whether bubblewrap is installed and allowed to make namespaces here."""
    if shutil.which(PROGRAM) is None:
        return False
    trial = subprocess.run(
        [*_command(readable), "--", sys.executable, "-c", ""],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=TRIAL_TIMEOUT_S,
        check=False,
    )
    return trial.returncode == 0


def enter(job: Job, arguments: dict[str, Json], readable: Iterable[Path], scratch: Path) -> NoReturn:
    """Become a confined interpreter that does the job. Raises OSError when bubblewrap cannot be started."""
    orders = os.memfd_create("orders", 0)
    os.write(orders, json.dumps([job.target, job.programs, arguments]).encode())
    os.lseek(orders, 0, os.SEEK_SET)
    os.dup2(orders, ORDERS)
    for descriptor in (child.CONTENT, child.OUTPUT, child.STATUS):
        os.set_inheritable(descriptor, True)
    paths = [*readable, *_files_of(sys.modules[job.module])]
    command = [*_command(paths), "--bind", str(scratch), str(scratch), "--chdir", str(scratch)]
    os.execvp(PROGRAM, [*command, "--", sys.executable, "-m", __name__])  # noqa: S606  a fixed list, no shell


def _command(readable: Iterable[Path]) -> list[str]:
    command = [PROGRAM, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--dev", "/dev"]
    for path in sorted(set(readable)):
        if path.is_symlink():
            command += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            command += ["--ro-bind", str(path), str(path)]
    return command


def _files_of(module: ModuleType) -> list[Path]:
    """A module's file and those of the packages around it."""
    names = module.__name__.split(".")
    around = [sys.modules[".".join(names[: depth + 1])] for depth in range(len(names))]
    return [Path(package.__file__) for package in around if package.__file__ is not None]


def _prepare() -> Callable[[BinaryIO], bytes]:
    with os.fdopen(ORDERS, "rb") as orders:
        target, programs, arguments = json.load(orders)
    for descriptor in (child.CONTENT, child.OUTPUT, child.STATUS):
        os.set_inheritable(descriptor, False)
    job = Job(target)
    function: child.JobFunction = getattr(importlib.import_module(job.module), job.function)
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    # A process namespace of its own confines its signals.
    seccomp.restrict(programs=programs, signals=True)
    return lambda document: function(document, arguments)


if __name__ == "__main__":
    child.conclude(_prepare)
