"""Scheduled passes: expired leases and lost bells, open deletions, superseded generations."""

from __future__ import annotations

import structlog

from pipeline.errors import SourceGone, TransientError
from pipeline.ledger import Overdue
from pipeline.ports import Doorbell
from pipeline.services.deletion import DeletionService
from pipeline.unit_of_work import SweepFinder, UnitOfWorkFactory

log = structlog.get_logger()

# Rows of one pass; what is left waits for the next.
BATCH = 500


class SweepService:
    def __init__(
        self,
        finder: SweepFinder,
        units: UnitOfWorkFactory,
        deletions: DeletionService,
        superseded_retention_s: float,
    ) -> None:
        self._finder = finder
        self._units = units
        self._deletions = deletions
        self._retention_s = superseded_retention_s

    def stuck(self) -> tuple[Doorbell, ...]:
        """Put expired leases back and ring again for lost bells; return the bells. One pass at a time."""
        bells: list[Doorbell] = []
        with self._finder.exclusive("stuck") as held:
            if not held:
                return ()
            for overdue in self._finder.overdue(BATCH):
                try:
                    bell = self._reclaim(overdue)
                except SourceGone:
                    continue  # it was deleted between finding and reclaiming
                except TransientError as problem:
                    # What was put back before is rung for; the next pass takes the rest.
                    log.warning("sweep.cut_short", why=problem.detail, rang=len(bells))
                    break
                if bell is not None:
                    log.info("sweep.rang", stage=bell.stage, source=str(bell.ref.source_id), unit=bell.unit)
                    bells.append(bell)
        return tuple(bells)

    def _reclaim(self, overdue: Overdue) -> Doorbell | None:
        with self._units(overdue.ref.tenant_id) as uow:
            bell = uow.ledger.reclaim(overdue)
            uow.commit()
        return bell

    def deletions(self) -> int:
        """Carry out open deletions and drop superseded generations; return how many were worked on."""
        with self._finder.exclusive("deletions") as held:
            if not held:
                return 0
            receipts = self._finder.open_deletions(BATCH)
            for tenant_id, receipt_id in receipts:
                self._deletions.carry_out(tenant_id, receipt_id)
            old = self._finder.superseded(BATCH, self._retention_s)
            for ref in old:
                with self._units(ref.tenant_id) as uow:
                    uow.deletions.drop_generation(ref)
                    uow.commit()
        return len(receipts) + len(old)
