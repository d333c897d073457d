"""Whether each dependency answers now."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NoAnswer

from pipeline.errors import ConfigurationError, TransientError

# A dependency that has not answered by then counts as down; the probe itself may go on for longer.
DEADLINE_S = 3.0


class ReadinessService:
    """``probes`` by the dependency's name; each raises TransientError or ConfigurationError when it is not usable."""

    def __init__(self, probes: Mapping[str, Callable[[], None]], deadline_s: float = DEADLINE_S) -> None:
        self._probes = {name: _Probe(name, probe) for name, probe in probes.items()}
        self._deadline_s = deadline_s

    def troubles(self) -> dict[str, str | None]:
        """Every dependency by name, with the reason why it is not usable or None; answers within the deadline."""
        running = {name: probe.start() for name, probe in self._probes.items()}
        ends_at = time.monotonic() + self._deadline_s
        return {name: self._trouble(answer, ends_at - time.monotonic()) for name, answer in running.items()}

    def _trouble(self, answer: Future[None], left_s: float) -> str | None:
        try:
            answer.result(max(left_s, 0.0))
        except NoAnswer:
            return f"no answer within {self._deadline_s:g} s"
        except TransientError as trouble:
            return trouble.detail
        except ConfigurationError as trouble:
            return str(trouble)
        return None


class _Probe:
    """One thread a dependency: while a probe hangs, no second one is started."""

    def __init__(self, name: str, probe: Callable[[], None]) -> None:
        self._probe = probe
        self._threads = ThreadPoolExecutor(max_workers=1, thread_name_prefix=f"probe-{name}")
        self._lock = threading.Lock()
        self._running: Future[None] | None = None

    def start(self) -> Future[None]:
        with self._lock:
            if self._running is None or self._running.done():
                self._running = self._threads.submit(self._probe)
            return self._running
