"""Who is let in next: Postgres holds the backlog, the broker only what was admitted."""

from __future__ import annotations

import uuid
from collections import Counter

from pipeline.ledger import Backlog, Candidate
from pipeline.ports import Doorbell
from pipeline.types import Priority
from pipeline.unit_of_work import SweepFinder, UnitOfWorkFactory

# Enough admitted work to keep every process busy while the next is chosen.
ADMITTED_PER_PROCESS = 2


def choose(backlog: Backlog, capacity: int) -> tuple[Candidate, ...]:
    """The candidates to admit, in order: interactive before bulk, then fewest in flight of the tenant, then age.

    At most ``capacity`` in flight in all, and at most half of it for one tenant while another waits.
    """
    in_flight: Counter[uuid.UUID] = Counter(backlog.in_flight_of)
    waiting = list(backlog.waiting)
    chosen: list[Candidate] = []
    while waiting and sum(in_flight.values()) < capacity:
        tenants = {candidate.ref.tenant_id for candidate in waiting}
        others_wait = len(tenants) > 1
        open_to = [
            candidate
            for candidate in waiting
            if not others_wait or in_flight[candidate.ref.tenant_id] < max(1, capacity // 2)
        ]
        if not open_to:
            break
        best = min(
            range(len(open_to)),
            key=lambda at: (open_to[at].priority is Priority.BULK, in_flight[open_to[at].ref.tenant_id], at),
        )
        candidate = open_to[best]
        waiting.remove(candidate)
        in_flight[candidate.ref.tenant_id] += 1
        chosen.append(candidate)
    return tuple(chosen)


class AdmissionService:
    def __init__(self, finder: SweepFinder, units: UnitOfWorkFactory, worker_processes: int) -> None:
        self._finder = finder
        self._units = units
        self._capacity = ADMITTED_PER_PROCESS * worker_processes

    def admit(self) -> tuple[Doorbell, ...]:
        """Admit what fits; the bells to ring, already marked as rung. One round at a time in the deployment."""
        bells: list[Doorbell] = []
        with self._finder.exclusive("admission", wait=True):
            for candidate in choose(self._finder.backlog(self._capacity), self._capacity):
                with self._units(candidate.ref.tenant_id) as uow:
                    bell = uow.ledger.admit(candidate)
                    uow.commit()
                if bell is not None:
                    bells.append(bell)
        return tuple(bells)
