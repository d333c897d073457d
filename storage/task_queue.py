"""The doorbell: messages are published by one background thread, after commit, never inside a request."""

from __future__ import annotations

import queue
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import structlog
from celery import Celery, chain, signature
from kombu.exceptions import OperationalError

from pipeline import flow
from pipeline.errors import TransientError
from pipeline.flow import MESSAGE_VERSION, Queue
from pipeline.ports import Doorbell

log = structlog.get_logger()

# Bells beyond this many are dropped; the sweep rings them again.
WAITING_BELLS = 1_000
# After a failure nothing is tried for this long.
CIRCUIT_OPEN_S = 5.0
_GATEWAY_TIMEOUTS = {"socket_timeout": 2, "socket_connect_timeout": 2}


def producer(broker_url: str, key_prefix: str) -> Celery:
    """An app that only sends, by name; connects on first use. Its socket timeouts are a gateway's."""
    app = Celery("docmill-producer", set_as_current=False)
    app.config_from_object("celeryconfig")
    app.conf.broker_url = broker_url
    app.conf.broker_transport_options = {
        **app.conf.broker_transport_options,
        **_GATEWAY_TIMEOUTS,
        "global_keyprefix": key_prefix,
    }
    return app


def message(bell: Doorbell) -> dict[str, Any]:
    """A stage message: version and ids, nothing else."""
    body: dict[str, Any] = {
        "version": MESSAGE_VERSION,
        "tenant": str(bell.ref.tenant_id),
        "source": str(bell.ref.source_id),
        "generation": bell.ref.generation,
    }
    if bell.unit is not None:
        body["unit"] = bell.unit
    if bell.alone:
        body["alone"] = True
    return body


class CeleryTaskQueue:
    """Adapter of :class:`pipeline.ports.TaskQueue`. Never blocks, never raises."""

    def __init__(self, app: Celery) -> None:
        self._app = app
        self._jobs: queue.Queue[Callable[[], None]] = queue.Queue(WAITING_BELLS)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._open_until = 0.0
        self.dropped = 0

    def ring(self, bells: Sequence[Doorbell]) -> None:
        for bell in bells:
            self._submit(partial(self._publish, bell))

    def ring_admission(self) -> None:
        self._submit(lambda: self._send("docmill.sweep.admission", {}, expires=30))

    def ring_deletion(self, tenant_id: uuid.UUID, receipt_id: uuid.UUID) -> None:
        body = {"version": MESSAGE_VERSION, "tenant": str(tenant_id), "receipt": str(receipt_id)}
        self._submit(lambda: self._send("docmill.delete", body, expires=300))

    def check(self) -> None:
        """Raises ``TransientError('broker', …)`` when the broker does not answer."""
        try:
            with self._app.connection_for_write() as connection:
                connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)
        except (OperationalError, OSError) as problem:
            raise TransientError("broker", f"no connection ({type(problem).__name__})") from problem

    def flush(self, timeout_s: float) -> None:
        """Wait until everything submitted was published or dropped, at most ``timeout_s``."""
        done = threading.Event()
        self._submit(done.set)
        done.wait(timeout_s)

    def _submit(self, job: Callable[[], None]) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="doorbell", daemon=True)
                self._thread.start()
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            self.dropped += 1

    def _run(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                job()
            except (OperationalError, OSError) as problem:
                self._open_until = time.monotonic() + CIRCUIT_OPEN_S
                self.dropped += 1
                log.warning("broker.unreachable", why=type(problem).__name__, pause_s=CIRCUIT_OPEN_S)

    def _publish(self, bell: Doorbell) -> None:
        """Ring for one unit, or for the chain that starts at a stage: nothing else builds one."""
        if self._is_open():
            return
        stages = flow.remaining(bell.stage) if bell.unit is None else (flow.spec(bell.stage),)
        steps = [
            signature(
                spec.task_name,
                kwargs=message(bell),
                immutable=True,
                app=self._app,
                queue=str(flow.queue_of(spec.stage, bell.priority, unit_pages=bell.unit_pages, alone=bell.alone)),
            )
            for spec in stages
        ]
        (chain(*steps, app=self._app) if len(steps) > 1 else steps[0]).apply_async()

    def _send(self, name: str, body: dict[str, Any], expires: int) -> None:
        if not self._is_open():
            self._app.send_task(name, kwargs=body, queue=str(Queue.MAINTENANCE), expires=expires)

    def _is_open(self) -> bool:
        if time.monotonic() < self._open_until:
            self.dropped += 1
            return True
        return False
