"""What one worker process holds: its sandbox (started by the main process) and its services (built after the fork)."""

from __future__ import annotations

import os
import threading
from functools import cache
from pathlib import Path
from typing import Any

import structlog
from celery.signals import celeryd_after_setup, worker_process_init, worker_shutdown

from pipeline import bootstrap
from pipeline.engines.sandbox.process import SandboxProcess
from pipeline.errors import ConfigurationError, TransientError
from pipeline.flow import Queue
from pipeline.logs import configure as configure_logs
from pipeline.services.runner import Faults
from pipeline.settings import Settings, load
from storage.task_queue import CeleryTaskQueue
from tasks import workdir
from tasks.faults import faults_of

log = structlog.get_logger()

# Readers that are worth importing before the first document waits for them.
PRELOADED = ("file.inspect", "document.read", "pdf.read", "ocr.recognize")
# The server is looked after this often; a call in between waits for it.
WATCH_S = 1.0
# Between a main process and its children; no settings.
_WORK_DIR = "WORKER_INSTANCE_DIR"
_MAIN_PID = "WORKER_INSTANCE_PID"


@cache
def settings() -> Settings:
    return load()


def work_dir() -> Path:
    """This worker instance's own directory, made by its main process and inherited by its children."""
    return Path(os.environ[_WORK_DIR])


@cache
def faults() -> Faults:
    return faults_of(settings().failpoint, int(os.environ[_MAIN_PID]))


@cache
def services() -> bootstrap.WorkerServices:
    """The services of this process, built at the first task: never before a fork."""
    return bootstrap.worker_services(settings(), work_dir(), faults())


@cache
def task_queue() -> CeleryTaskQueue:
    from tasks.app import app

    return CeleryTaskQueue(app)


class _SandboxKeeper:
    """Keeps the instance's sandbox server running for as long as the main process lives."""

    def __init__(self, directory: Path) -> None:
        self._sandbox = SandboxProcess.start(directory, preload=PRELOADED)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="sandbox-keeper", daemon=True)
        log.info("sandbox.started", isolation=str(self._sandbox.isolation))
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopped.wait(WATCH_S):
            try:
                if self._sandbox.ensure_alive():
                    log.warning("sandbox.restarted")
            except TransientError as problem:
                log.warning("sandbox.not_restarted", why=problem.detail)

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()
        self._sandbox.stop()


_keepers: list[_SandboxKeeper] = []


@celeryd_after_setup.connect
def start_instance(instance: Any, **_: Any) -> None:
    """In the main process, before any child: check the deployment, make the work directory, start the sandbox."""
    configure_logs(settings().log_level)
    directory = workdir.make(settings().work_dir)
    os.environ[_WORK_DIR] = str(directory)
    os.environ[_MAIN_PID] = str(os.getpid())
    consumed = _consume_in_order(instance.app)
    try:
        bootstrap.check_worker(settings(), embeds=str(Queue.EMBED) in consumed)
        if consumed != {str(Queue.EMBED)}:
            _keepers.append(_SandboxKeeper(directory / "sandbox"))
    except (ConfigurationError, TransientError) as problem:
        raise SystemExit(f"docmill worker: {problem}") from problem


def _consume_in_order(app: Any) -> set[str]:
    """Take messages in the order of celeryconfig's queues, whatever order the command line named them in.

    The order is strict: with the sweeps behind the documents, a busy worker would never recover anything.
    """
    chosen = set(app.amqp.queues.consume_from)
    app.amqp.queues.select([queue.name for queue in app.conf.task_queues if queue.name in chosen])
    return chosen


@worker_process_init.connect
def start_child(**_: Any) -> None:
    configure_logs(settings().log_level)


@worker_shutdown.connect
def stop_instance(**_: Any) -> None:
    for keeper in _keepers:
        keeper.stop()
    _keepers.clear()
    workdir.remove(work_dir())
