"""How an application process shows that it works, not merely that it is there."""

from __future__ import annotations

import http.client
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.entrypoints.embedded import processes
from pipeline.entrypoints.embedded.processes import Application, Proof

_HTTP_TIMEOUT_S = 1.0
_HTTP_PAUSE_S = 0.2
_PING_TIMEOUT_S = 30.0

# Asked again and again while the processes are tended, so every call returns at once or nearly so.
Holds = Callable[[], bool]


def proof_of(application: Application, environment: Mapping[str, str], directory: Path) -> Holds:
    """A question to put to a running process. ``environment`` and ``directory`` are those it was started with."""
    match application.proof:
        case Proof.ALIVE:
            return lambda: True
        case Proof.READYZ:
            return _Http(application.target, {http.HTTPStatus.OK})
        case Proof.HTTP_ANSWER:
            return _Http(application.target, set(http.HTTPStatus))
        case Proof.WORKER_PING:
            return _Ping(application.target, environment, directory)


class _Http:
    def __init__(self, url: str, wanted: set[http.HTTPStatus]) -> None:
        self._url = urlsplit(url)
        self._wanted = wanted
        self._ask_at = 0.0

    def __call__(self) -> bool:
        if time.monotonic() < self._ask_at:
            return False
        connection = http.client.HTTPConnection(self._url.hostname or "", self._url.port, timeout=_HTTP_TIMEOUT_S)
        try:
            connection.request("GET", self._url.path)
            return connection.getresponse().status in self._wanted
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
            self._ask_at = time.monotonic() + _HTTP_PAUSE_S


class _Ping:
    """Asks by Celery's own command, in a process of its own: only the worker's consumer can answer."""

    def __init__(self, node: str, environment: Mapping[str, str], directory: Path) -> None:
        self._command = processes.ping_command(node)
        self._environment = dict(environment)
        self._directory = directory
        self._asked: subprocess.Popen[bytes] | None = None
        self._give_up_at = 0.0

    def __call__(self) -> bool:
        if self._asked is None:
            self._asked = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            self._give_up_at = time.monotonic() + _PING_TIMEOUT_S
        code = self._asked.poll()
        if code is None and time.monotonic() > self._give_up_at:
            self._asked.kill()
            code = self._asked.wait()
        if code is not None:
            self._asked = None
        return code == 0
