"""A deployment for tests: worker processes and beat over the session's services, driven through the services."""

from __future__ import annotations

import hashlib
import io
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import psutil
from sqlalchemy import text

from pipeline import bootstrap
from pipeline.bootstrap import GatewayServices
from pipeline.flow import Queue
from pipeline.records import Source
from pipeline.services.files import UploadContent, UploadRequest
from pipeline.settings import load
from pipeline.types import IngestMode, Principal, Priority
from storage.engine import build_engine
from storage.identity import create_tenant

REPOSITORY = Path(__file__).parents[1]
ENDED = frozenset({"published", "failed", "cancelled", "superseded"})
MAIN_QUEUES = ",".join(queue for queue in Queue if queue is not Queue.EMBED)
ALL_QUEUES = ",".join(Queue)


class Deployment:
    """Workers and beat of one test, with a key prefix of its own on the shared broker."""

    def __init__(self, environment: Mapping[str, str], superuser_url: str, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            **environment,
            "DOCMILL_BROKER_KEY_PREFIX": f"test-{uuid.uuid4().hex[:8]}:",
            "DOCMILL_WORK_DIR": str(directory),
        }
        self.settings = load(
            **{name.removeprefix("DOCMILL_").lower(): value for name, value in self.environment.items()}
        )
        # The producer's base settings are read at import; its broker and prefix are this deployment's own.
        os.environ.setdefault("DOCMILL_BROKER_URL", self.environment["DOCMILL_BROKER_URL"])
        self.processes: list[subprocess.Popen[bytes]] = []
        self.superuser = build_engine(superuser_url, pool_size=1, application="tests-superuser")
        self._services: GatewayServices | None = None

    @property
    def services(self) -> GatewayServices:
        if self._services is None:
            bootstrap.migrate(self.settings)
            self._services = bootstrap.gateway_services(self.settings)
        return self._services

    def principal(self, user: str = "ana", tenant: str | None = None) -> Principal:
        assert self.services
        migrator = bootstrap.engine(self.settings, "migrator", pool_size=1)
        try:
            return Principal(create_tenant(migrator, tenant or f"tenant-{uuid.uuid4()}"), user)
        finally:
            migrator.dispose()

    # --- processes ---

    def start_worker(
        self,
        queues: str = ALL_QUEUES,
        *,
        concurrency: int = 2,
        pool: str = "prefork",
        app: str = "tasks.app:app",
        **environment: str,
    ) -> subprocess.Popen[bytes]:
        name = f"w{len(self.processes)}@test"
        return self._start(
            ("worker", "--hostname", name, "--queues", queues, "--pool", pool, "--concurrency", str(concurrency)),
            {"REMAP_SIGTERM": "SIGQUIT", **environment},
            app,
        )

    def start_beat(self) -> subprocess.Popen[bytes]:
        schedule = str(self.directory / f"beat-{len(self.processes)}")
        return self._start(("beat", "--schedule", schedule, "--pidfile="), {})

    def _start(
        self, arguments: Sequence[str], environment: Mapping[str, str], app: str = "tasks.app:app"
    ) -> subprocess.Popen[bytes]:
        log = (self.directory / f"{arguments[0]}-{len(self.processes)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "-A", app, *arguments, "--loglevel", "INFO"],
            cwd=REPOSITORY,
            env={**os.environ, **self.environment, "OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1", **environment},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        log.close()
        self.processes.append(process)
        return process

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.directory.glob("*.log")))

    def stop(self) -> None:
        """End every process this deployment started, and what those left behind in their sessions."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes:
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._end_session(process.pid)
        if self._services is not None:
            self._services = None
        self.superuser.dispose()

    @staticmethod
    def _end_session(leader: int) -> None:
        for candidate in psutil.process_iter(["pid"]):
            try:
                if os.getsid(candidate.pid) == leader:
                    candidate.kill()
            except (ProcessLookupError, psutil.NoSuchProcess):
                continue

    # --- documents ---

    def upload(
        self,
        principal: Principal,
        body: bytes,
        filename: str = "note.txt",
        media_type: str = "text/plain",
        priority: Priority = Priority.INTERACTIVE,
        ingest: IngestMode = IngestMode.INDEX,
    ) -> uuid.UUID:
        content = UploadContent(io.BytesIO(body), len(body), hashlib.sha256(body).hexdigest())
        request = UploadRequest(filename, media_type, ingest=ingest, priority=priority)
        uploaded = self.services.files.upload(principal, request, content)
        assert uploaded.source_id is not None
        return uploaded.source_id

    def source(self, principal: Principal, source_id: uuid.UUID) -> Source:
        return self.services.reading.source(principal, source_id)

    def wait_ended(self, principal: Principal, source_ids: Sequence[uuid.UUID], timeout_s: float = 90) -> list[Source]:
        """Every source's newest attempt has ended."""
        found: list[Source] = []

        def ended() -> bool:
            found[:] = [self.source(principal, source_id) for source_id in source_ids]
            return all(source.latest.status in ENDED for source in found)

        self.wait_for(ended, timeout_s, lambda: "\n".join(f"{s.title}: {s.latest} {s.stage}" for s in found))
        return found

    def wait_for(self, condition: Callable[[], bool], timeout_s: float, why: Callable[[], str] = str) -> None:
        deadline = time.monotonic() + timeout_s
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"not within {timeout_s} s: {why()}\n{self.logs()[-6000:]}")
            time.sleep(0.05)

    def sql(self, statement: str, **values: object) -> list[tuple[object, ...]]:
        """As superuser, past every policy."""
        with self.superuser.begin() as connection:
            result = connection.execute(text(statement), values)
            return [tuple(row) for row in result.all()] if result.returns_rows else []

    def check_guarantees(self, tenant_id: uuid.UUID) -> None:
        """G1, G2, G8 in rows: every attempt ended or is under way; published chunks are whole and unique."""
        assert self.sql(
            "SELECT count(*) FROM generations WHERE tenant_id = :t AND status = 'failed' AND failure_code = 'crashed'",
            t=tenant_id,
        ) == [(0,)]
        mismatched = self.sql(
            "SELECT s.source_id FROM sources s WHERE s.tenant_id = :t AND s.published_generation IS NOT NULL AND ("
            " s.chunk_count <> (SELECT count(*) FROM chunks c WHERE c.tenant_id = s.tenant_id"
            "   AND c.source_id = s.source_id AND c.generation = s.published_generation)"
            " OR s.chunk_count <> (SELECT count(*) FROM chunk_embeddings e JOIN tenants t ON t.tenant_id = e.tenant_id"
            "   WHERE e.tenant_id = s.tenant_id AND e.set_id = t.active_set AND e.source_no = s.source_no"
            "   AND e.generation = s.published_generation)"
            " OR EXISTS (SELECT FROM chunks c WHERE c.tenant_id = s.tenant_id AND c.source_id = s.source_id"
            "   AND c.generation = s.published_generation GROUP BY c.chunk_id HAVING count(*) > 1)"
            " OR s.chunk_count <> (SELECT coalesce(max(ordinal), -1) + 1 FROM chunks c WHERE c.tenant_id = s.tenant_id"
            "   AND c.source_id = s.source_id AND c.generation = s.published_generation))",
            t=tenant_id,
        )
        assert mismatched == []
