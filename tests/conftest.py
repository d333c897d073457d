"""The real services, started once for a test session and shared by its parallel workers."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipeline.entrypoints.embedded.services import EmbeddedServices
from storage.content import S3ContentStore
from tests.services_host import MIGRATED

REPOSITORY = Path(__file__).parents[1]
START_TIMEOUT_S = 90.0
ROLES = ("docmill_migrator", "docmill_gateway", "docmill_worker", "docmill_sweep", "docmill_backup", "postgres")


@dataclass(frozen=True)
class DatabaseUrls:
    """SQLAlchemy URLs of one migrated database, one for each role."""

    migrator: str
    gateway: str
    worker: str
    sweep: str
    backup: str
    superuser: str


def _session_pid() -> int:
    """The main process of the test session: a parallel worker's parent, else ourselves."""
    return os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()


def _directory(session: int) -> Path:
    return Path(f"/tmp/docmill-tests-{os.geteuid()}-{session}")


@pytest.fixture(scope="session")
def services() -> EmbeddedServices:
    """Postgres, Redis and S3; running, owned by a process beside the session."""
    session = _session_pid()
    directory = _directory(session)
    directory.mkdir(mode=0o700, exist_ok=True)
    with (directory / "start.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "ready").exists():
            _start_host(directory, session)
    return EmbeddedServices(directory, running=True)


def _start_host(directory: Path, session: int) -> None:
    with (directory / "host.log").open("w") as log:
        host = subprocess.Popen(
            [sys.executable, "-m", "tests.services_host", str(directory), str(session)],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (directory / "host.pid").write_text(str(host.pid))
    deadline = time.monotonic() + START_TIMEOUT_S
    while not (directory / "ready").exists():
        if host.poll() is not None or time.monotonic() > deadline:
            pytest.fail("the services did not start:\n" + (directory / "host.log").read_text(), pytrace=False)
        time.sleep(0.05)
    # It outlives this worker; init or the session's end collects it.
    host.returncode = 0


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The session's main process takes the services down and their data with them."""
    if hasattr(session.config, "workerinput"):
        return
    directory = _directory(os.getpid())
    if not (directory / "host.pid").exists():
        return
    host = int((directory / "host.pid").read_text())
    try:
        watched = os.pidfd_open(host)
    except ProcessLookupError:
        return
    os.kill(host, signal.SIGTERM)
    select.select([watched], [], [], START_TIMEOUT_S)
    os.close(watched)
    shutil.rmtree(directory)


@pytest.fixture(scope="session")
def database_name(services: EmbeddedServices) -> str:
    """This worker's own migrated database."""
    name = f"docmill_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    services.copy_database(MIGRATED, name)
    return name


@pytest.fixture(scope="session")
def database_urls(services: EmbeddedServices, database_name: str) -> DatabaseUrls:
    def url(role: str) -> str:
        return services.database_url(role, database_name)

    return DatabaseUrls(
        migrator=url("docmill_migrator"),
        gateway=url("docmill_gateway"),
        worker=url("docmill_worker"),
        sweep=url("docmill_sweep"),
        backup=url("docmill_backup"),
        superuser=url("postgres"),
    )


@pytest.fixture(scope="session")
def content_store(services: EmbeddedServices) -> S3ContentStore:
    return services.content_store()
