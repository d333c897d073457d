"""One child process: started in its own session, bound to our life, logged to its own file, stopped as a group."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_POLL_S = 0.02
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class ProcessSpec:
    """How to run and stop one process.

    ``enter`` runs in the child before the program (a change of account); ``orphan_signal`` is what the kernel sends
    the process when we die without having stopped it; ``grace_s`` is how long ``stop_signal`` may take before SIGKILL.
    """

    name: str
    command: tuple[str, ...]
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    enter: Callable[[], None] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    orphan_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10.0


class Process:
    """A running (or ended) instance of a :class:`ProcessSpec`."""

    def __init__(self, spec: ProcessSpec) -> None:
        """Start it. Raises ``OSError`` when the program cannot be started."""
        self.spec = spec
        self._started_at = time.monotonic()
        descriptor = os.open(spec.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            # The kernel's parent-death signal follows the thread that forked, so this is called from a main thread.
            self._child = subprocess.Popen(
                spec.command,
                stdin=subprocess.DEVNULL,
                stdout=descriptor,
                stderr=descriptor,
                env=dict(spec.environment),
                cwd=spec.directory or "/",
                start_new_session=True,
                preexec_fn=_Prelude(spec, os.getpid()),  # noqa: PLW1509 (one thread runs here)
            )
        finally:
            os.close(descriptor)

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def age_s(self) -> float:
        return time.monotonic() - self._started_at

    def has_ended(self) -> bool:
        """Whether the main process is gone; it stays a zombie, so that its number still names its group."""
        if self._child.returncode is not None:
            return True
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def ask_to_stop(self) -> None:
        """Send the stop signal to the main process, which stops its own children."""
        if not self.has_ended():
            self._child.send_signal(self.spec.stop_signal)

    def finish(self) -> int:
        """Wait out the grace time, kill whatever is left of the process group, and return the exit code."""
        wait_until(self.has_ended, self.spec.grace_s)
        self.kill()
        return self._child.wait()

    def kill(self) -> None:
        """Kill the whole group, as long as the main process has not been collected."""
        if self._child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        self.ask_to_stop()
        self.finish()


class _Prelude:
    """Runs in the child between fork and exec."""

    def __init__(self, spec: ProcessSpec, parent: int) -> None:
        self._spec = spec
        self._parent = parent

    def __call__(self) -> None:
        if self._spec.enter is not None:
            self._spec.enter()
        # After the change of account, which clears it.
        die_with_parent(self._parent, self._spec.orphan_signal)


def die_with_parent(parent: int, with_signal: signal.Signals) -> None:
    """Ask the kernel to send this process a signal when its parent dies; end at once if it is dead already."""
    if _LIBC.prctl(_PR_SET_PDEATHSIG, int(with_signal), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
    if os.getppid() != parent:
        os._exit(1)


def wait_until(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Poll ``condition`` until it holds; False when ``timeout_s`` passed first."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_S)
    return True
