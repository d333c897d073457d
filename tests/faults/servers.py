"""Postgres, Redis and S3 of the fault tests' own: they are killed, frozen and started again."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pipeline.entrypoints.embedded.process import Process
from pipeline.entrypoints.embedded.services import EmbeddedServices

_START_TIMEOUT_S = 60.0
_RELAUNCH_PAUSE_S = 0.5


class Servers:
    """What happens to servers. Used from the test's main thread, which their lives are bound to."""

    def __init__(self, services: EmbeddedServices) -> None:
        self.services = services

    def kill(self, name: str) -> None:
        """SIGKILL, without a word to its clients."""
        process = self.services.processes[name]
        process.kill()
        process.finish()

    def start(self, name: str) -> float:
        """Start it again on the data it left behind; return the seconds until it was ready."""
        began = time.monotonic()
        server = next(server for server in self.services.servers if server.name == name)
        self._launch(name)
        while not server.is_ready():
            assert time.monotonic() - began < _START_TIMEOUT_S, f"{name} did not start again"
            if self.services.processes[name].has_ended():
                # What the killed instance left running lets go of the data in a moment.
                self.services.processes[name].finish()
                time.sleep(_RELAUNCH_PAUSE_S)
                self._launch(name)
            time.sleep(0.02)
        return time.monotonic() - began

    @contextmanager
    def frozen(self, name: str) -> Iterator[None]:
        """SIGSTOP: connections stay open and nothing answers. SIGCONT at the end."""
        pid = self.services.processes[name].pid
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def _launch(self, name: str) -> None:
        server = next(server for server in self.services.servers if server.name == name)
        server.prepare()
        self.services.processes[name] = Process(server.spec())


@contextmanager
def running(directory: Path) -> Iterator[Servers]:
    with EmbeddedServices(directory) as services:
        yield Servers(services)
