"""A stack to measure: the embedded servers, a chosen number of worker processes, and CPU accounting of all of it."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import psutil

from pipeline import bootstrap
from pipeline.bootstrap import GatewayServices
from pipeline.engines import media
from pipeline.entrypoints.embedded.services import EmbeddedServices
from pipeline.errors import RequestError
from pipeline.flow import Queue
from pipeline.records import Source
from pipeline.services.files import UploadContent, UploadRequest
from pipeline.settings import load
from pipeline.types import Principal, Priority
from storage.identity import create_tenant

REPOSITORY = Path(__file__).parents[1]
READY_S = 120.0
ENDED = frozenset({"published", "failed", "cancelled", "superseded"})
# What docmill up sets for every process; without it Tesseract burns a second core for nothing.
CALM = {"OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1", "TOKENIZERS_PARALLELISM": "false"}
ALL_QUEUES = ",".join(Queue)
MAIN_QUEUES = ",".join(queue for queue in Queue if queue is not Queue.EMBED)


class Stack:
    """Servers, workers and beat in a directory of their own; everything ends with the ``with`` block."""

    def __init__(self, workers: Sequence[tuple[str, ...]], *, capacity: int) -> None:
        """``workers`` are the arguments of each worker instance; ``capacity`` the processes admission reckons with."""
        self._holder = tempfile.TemporaryDirectory(prefix="docmill-bench-")
        self._directory = Path(self._holder.name)
        self._services = EmbeddedServices(self._directory / "data")
        self._workers = workers
        self._capacity = capacity
        self._processes: list[subprocess.Popen[bytes]] = []
        self.gateway: GatewayServices
        self.principal: Principal

    def __enter__(self) -> Self:
        self._services.start()
        environment = self._services.settings_environment()
        environment["DOCMILL_WORK_DIR"] = str(self._directory)
        environment["DOCMILL_WORKER_PROCESSES"] = str(self._capacity)
        os.environ.update(environment)
        settings = load()
        bootstrap.migrate(settings)
        migrator = bootstrap.engine(settings, "migrator", pool_size=1)
        self.principal = Principal(create_tenant(migrator, f"bench-{uuid.uuid4()}"), "bench0")
        migrator.dispose()
        self.gateway = bootstrap.gateway_services(settings)
        for number, arguments in enumerate(self._workers):
            self._start(("worker", "--hostname", f"bench{number}@docmill", *arguments))
        self._start(("beat", "--schedule", str(self._directory / "beat"), "--pidfile="))
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._services.stop()
        self._holder.cleanup()

    def _start(self, arguments: Sequence[str]) -> None:
        with (self._directory / f"process-{len(self._processes)}.log").open("wb") as log:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "celery", "-A", "tasks.app:app", *arguments, "--loglevel", "WARNING"],
                    cwd=REPOSITORY,
                    env={**os.environ, **CALM, "REMAP_SIGTERM": "SIGQUIT", "DOCMILL_LOG_LEVEL": "WARNING"},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
            )

    def cpu_s(self) -> float:
        """CPU seconds so far of every process of the stack, those that ended and were waited for included."""
        total = 0.0
        for pid in (*self._services.pids().values(), *(process.pid for process in self._processes)):
            for process in (psutil.Process(pid), *psutil.Process(pid).children(recursive=True)):
                try:
                    times = process.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                total += times.user + times.system + times.children_user + times.children_system
        return total

    def ingest(self, paths: Sequence[Path], *, copies: int = 1) -> list[Source]:
        """Upload every file and wait until each has ended; each copy belongs to a user of its own."""
        owners = [replace(self.principal, user=f"bench{number}") for number in range(copies)]
        waiting = [
            (owner, source) for owner in owners for path in paths if (source := self._upload(owner, path)) is not None
        ]
        ended: list[Source] = []
        deadline = time.monotonic() + 3600
        while waiting and time.monotonic() < deadline:
            found = self.gateway.reading.source(*waiting[0])
            if found.latest.status in ENDED:
                ended.append(found)
                waiting.pop(0)
            else:
                time.sleep(0.1)
        if waiting:
            raise TimeoutError("the documents did not end within an hour")
        return ended

    def _upload(self, owner: Principal, path: Path) -> uuid.UUID | None:
        body = path.read_bytes()
        declared = media.media_type_for(path.name)
        if declared is None:
            return None
        request = UploadRequest(path.name, declared, priority=Priority.BULK)
        content = UploadContent(io.BytesIO(body), len(body), hashlib.sha256(body).hexdigest())
        try:
            return self.gateway.files.upload(owner, request, content).source_id
        except RequestError as problem:
            print(f"  refused {path.name}: {problem}", file=sys.stderr)
            return None

    def forget(self, sources: Sequence[Source]) -> None:
        """Delete sources, so that the same bytes can be ingested again."""
        for source in sources:
            owner = replace(self.principal, user=source.auth_subject.removeprefix("user:"))
            receipt = self.gateway.deletions.delete_source(owner, source.source_id, with_file=True)
            while not self.gateway.deletions.receipt(owner, receipt).complete:
                time.sleep(0.1)


def documents(directory: Path) -> list[Path]:
    """Every file of a type that is read below a directory, in order."""
    return sorted(
        path
        for path in directory.rglob("*")
        if path.is_file()
        and (kind := media.find(media.media_type_for(path.name) or "")) is not None
        and kind.reader is not None
        and path.stat().st_size
    )
