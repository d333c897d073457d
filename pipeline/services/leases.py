"""Keeps leases alive: one thread a process beats for everything the process holds."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import structlog

from pipeline.errors import LeaseLost, TransientError
from pipeline.flow import Stage
from pipeline.types import GenerationRef
from pipeline.unit_of_work import UnitOfWorkFactory

log = structlog.get_logger()


@dataclass(eq=False)
class Lease:
    """One held stage or unit. ``lost`` is set once another took it over."""

    ref: GenerationRef
    stage: Stage
    unit: int | None
    token: uuid.UUID
    lost: threading.Event = field(default_factory=threading.Event)

    def check(self) -> None:
        """Raises LeaseLost when going on is pointless."""
        if self.lost.is_set():
            raise LeaseLost(f"{self.stage} of {self.ref.source_id} was taken over")


class LeaseKeeper:
    """Beats every ``interval_s`` with a connection of its own, apart from the work's."""

    def __init__(self, units: UnitOfWorkFactory, interval_s: float) -> None:
        self._units = units
        self._interval_s = interval_s
        self._held: set[Lease] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def hold(self, lease: Lease) -> Iterator[Lease]:
        with self._changed:
            self._held.add(lease)
            # A bug that ended the thread must not cost every later lease of the process.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="lease-keeper", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield lease
        finally:
            with self._changed:
                self._held.discard(lease)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._held:
                    self._changed.wait()
            # Not cut short by the next stage: most end before their first beat is due.
            time.sleep(self._interval_s)
            with self._changed:
                held = tuple(self._held)
            for lease in held:
                self._beat(lease)

    def _beat(self, lease: Lease) -> None:
        try:
            with self._units(lease.ref.tenant_id) as uow:
                alive = uow.ledger.beat(lease.ref, lease.stage, lease.unit, lease.token)
                uow.commit()
        except TransientError as problem:
            log.warning("lease.beat_failed", source=str(lease.ref.source_id), stage=lease.stage, why=problem.detail)
            return
        with self._changed:
            still_held = lease in self._held
        if not alive and still_held:
            lease.lost.set()
