"""How an application process shows that it works, not merely that it is there."""

from __future__ import annotations

import http.client
import subprocess
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.entrypoints.embedded import processes
from pipeline.entrypoints.embedded.processes import Application, Proof

_HTTP_TIMEOUT_S = 5.0
_PING_TIMEOUT_S = 30.0


def holds(application: Application, environment: Mapping[str, str], directory: Path) -> bool:
    """One attempt, for a process that is running. ``environment`` and ``directory`` are those it was started with."""
    match application.proof:
        case Proof.ALIVE:
            return True
        case Proof.READYZ:
            return _http_status(application.target) == http.HTTPStatus.OK
        case Proof.HTTP_ANSWER:
            return _http_status(application.target) is not None
        case Proof.WORKER_PING:
            return _answers_ping(application.target, environment, directory)


def _http_status(url: str) -> int | None:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_HTTP_TIMEOUT_S)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()


def _answers_ping(node: str, environment: Mapping[str, str], directory: Path) -> bool:
    try:
        asked = subprocess.run(
            processes.ping_command(node),
            env=dict(environment),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PING_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    return asked.returncode == 0
