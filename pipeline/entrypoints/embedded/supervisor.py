"""Starts processes in order, restarts the ones that end, and stops all of them together."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import structlog

from pipeline.entrypoints.embedded.process import Process, ProcessSpec
from pipeline.errors import ConfigurationError

# A process that lived this long before it ended had started well.
_SETTLED_S = 10.0
_MOST_QUICK_DEATHS = 5
_LONGEST_PAUSE_S = 1.5
_FIRST_PAUSE_S = 0.1
_POLL_S = 0.1

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Kept:
    """One process under supervision; ``process`` is None between an end and the next start."""

    name: str
    make_spec: Callable[[], ProcessSpec]
    process: Process | None
    quick_deaths: int = 0
    start_at: float = 0.0


class Supervisor:
    """Keeps processes running. Runs in one thread; nothing but :meth:`tend` starts anything again."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        """``on_change`` is called after every start and end."""
        self._kept: list[_Kept] = []
        self._leaving: list[Process] = []
        self._on_change = on_change

    def adopt(self, name: str, make_spec: Callable[[], ProcessSpec], process: Process) -> None:
        """Take over a process that runs already. ``make_spec`` prepares and describes its next start."""
        self._kept.append(_Kept(name, make_spec, process))

    def start(self, name: str, make_spec: Callable[[], ProcessSpec]) -> None:
        self.adopt(name, make_spec, Process(make_spec()))
        self._on_change()

    def pids(self) -> dict[str, int]:
        return {kept.name: kept.process.pid for kept in self._kept if kept.process is not None}

    def tend(self) -> None:
        """One look at every process: note the ends, start again what is due.

        Raises :class:`~pipeline.errors.ConfigurationError` when a process keeps ending right after its start.
        """
        for kept in self._kept:
            if kept.process is None:
                if time.monotonic() >= kept.start_at:
                    kept.process = Process(kept.make_spec())
                    self._on_change()
            elif kept.process.has_ended():
                self._note_end(kept, kept.process)

    def watch(self) -> None:
        """Tend for ever. Raises as :meth:`tend` does."""
        while True:
            self.tend()
            time.sleep(_POLL_S)

    def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Tend until ``condition`` holds; False when ``timeout_s`` passed first. Raises as :meth:`tend` does."""
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                return False
            self.tend()
            time.sleep(_POLL_S)
        return True

    def stop(self, names: Sequence[str]) -> None:
        """Stop these, the last first: all are asked, then each gets its grace time, then it is killed."""
        leaving = [kept for kept in reversed(self._kept) if kept.name in names]
        self._kept = [kept for kept in self._kept if kept.name not in names]
        self._leaving = running = [kept.process for kept in leaving if kept.process is not None]
        for process in running:
            process.ask_to_stop()
        for process in running:
            process.finish()

    def kill(self) -> None:
        """Kill everything at once, also what is being stopped. May be called from a signal handler."""
        for process in [*self._leaving, *(kept.process for kept in self._kept if kept.process is not None)]:
            process.kill()

    def _note_end(self, kept: _Kept, process: Process) -> None:
        code = process.finish()
        kept.process = None
        kept.quick_deaths = kept.quick_deaths + 1 if process.age_s < _SETTLED_S else 0
        if kept.quick_deaths >= _MOST_QUICK_DEATHS:
            raise ConfigurationError(
                f"{kept.name} ended {kept.quick_deaths} times right after its start, the last time with {_how(code)}; "
                f"see {process.spec.log}"
            )
        pause = min(_FIRST_PAUSE_S * 2**kept.quick_deaths, _LONGEST_PAUSE_S)
        kept.start_at = time.monotonic() + pause
        _log.warning("process_ended", process=kept.name, how=_how(code), restart_in_s=pause)
        self._on_change()


def _how(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
