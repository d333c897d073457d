"""Runs one stage, or one unit of one, under the ledger's rules: claim, work, finish, or give back."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeVar

import structlog

from pipeline import ledger
from pipeline.errors import Failure, FailureCode, LeaseLost, OriginalMissing, SourceGone, TransientError
from pipeline.flow import Stage
from pipeline.ledger import UnitPlan, Won, Work
from pipeline.ports import Doorbell
from pipeline.services.ingest.handler import FanOut, Finish, StageHandler, UnitFinish
from pipeline.services.leases import Lease, LeaseKeeper
from pipeline.types import GenerationRef, Priority
from pipeline.unit_of_work import UnitOfWork, UnitOfWorkFactory

log = structlog.get_logger()
T = TypeVar("T")

# A parser that dies twice on the same bytes will die a third time.
SANDBOX_DEATHS = 2
# Losses while the document ran alone, after which it is held to kill its workers.
LOSSES_ALONE = 5
# While Postgres is away, claiming and giving back are tried for this long: longer than a restart, shorter than a lease.
AWAY_S = 12.0
AWAY_PAUSE_S = 1.0
# Progress is told no more often than a reader could follow.
PROGRESS_S = 0.5
# Deadlocks and serialisation failures are tried again at once, this many times in all.
COMMIT_TRIES = 3
_AT_ONCE = frozenset({"40001", "40P01"})


class Next(StrEnum):
    """Whether the chain goes on."""

    CONTINUE = "continue"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Step:
    """What a task does after the service returns: go on or stop, ring these bells, ask for an admission round."""

    next: Next
    bells: tuple[Doorbell, ...] = ()
    ended: bool = False


STOP = Step(Next.STOP)
CONTINUE = Step(Next.CONTINUE)


class Faults(Protocol):
    """Where a fault test may interfere; the production adapter does nothing."""

    def point(self, name: str, stage: Stage) -> None: ...


class NoFaults:
    def point(self, name: str, stage: Stage) -> None:
        """Nothing happens."""


class _Progress:
    """The handler's watch: progress to the ledger, the lease checked at every step."""

    def __init__(self, units: UnitOfWorkFactory, lease: Lease, faults: Faults) -> None:
        self._units = units
        self._lease = lease
        self._faults = faults
        self._told = time.monotonic()

    def step(self, done: int, total: int) -> None:
        self._lease.check()
        if self._lease.unit is not None or time.monotonic() - self._told < PROGRESS_S:
            return  # a unit counts when it is done, and what is quick is done before anybody looks
        self._told = time.monotonic()
        with self._units(self._lease.ref.tenant_id) as uow:
            uow.sources.hold(self._lease.ref)
            uow.ledger.progress(self._lease.ref, self._lease.stage, done, total)
            uow.commit()

    def point(self, name: str) -> None:
        self._faults.point(name, self._lease.stage)


class StageRunner:
    """One use case for every stage. Document problems are recorded, infrastructure trouble is given back."""

    def __init__(
        self,
        units: UnitOfWorkFactory,
        handlers: Mapping[Stage, StageHandler],
        leases: LeaseKeeper,
        faults: Faults,
    ) -> None:
        self._units = units
        self._handlers = handlers
        self._leases = leases
        self._faults = faults

    def run(self, ref: GenerationRef, stage: Stage, unit: int | None, *, alone: bool) -> Step:
        """Run it if it may run now. Raises only bugs, and TransientError when Postgres itself is away."""
        try:
            return self._run(ref, stage, unit, alone=alone)
        except (LeaseLost, SourceGone) as problem:
            log.info("stage.abandoned", stage=stage, source=str(ref.source_id), why=str(problem))
            return Step(Next.STOP, ended=isinstance(problem, SourceGone))

    def _run(self, ref: GenerationRef, stage: Stage, unit: int | None, *, alone: bool) -> Step:
        claim, work, plan = _patiently(lambda: self._claim(ref, stage, unit, alone=alone))
        if isinstance(claim, ledger.MustRunAlone):
            return Step(Next.STOP, (Doorbell(ref, stage, self._priority(ref), unit, 1, alone=True),))
        if isinstance(claim, ledger.AlreadyDone):
            return STOP if unit is not None else CONTINUE
        if not isinstance(claim, Won) or work is None:
            log.info("stage.not_claimed", stage=stage, source=str(ref.source_id), answer=type(claim).__name__)
            return STOP
        self._faults.point("claimed", stage)
        lease = Lease(ref, stage, unit, claim.token)
        if claim.lost_alone >= LOSSES_ALONE:
            failure = Failure(FailureCode.CRASHED, f"The document ended its worker {claim.lost_leases} times.")
            return self._fail(work, lease, failure)
        try:
            with self._leases.hold(lease):
                return self._work(work, plan, lease)
        except TransientError as problem:
            return self._defer(lease, problem)
        except OriginalMissing as problem:
            # Of a source that is being removed this says so; of any other it is the end, as nobody could read it.
            log.error("original.missing", stage=stage, source=str(ref.source_id), why=str(problem))  # noqa: TRY400
            return self._fail(work, lease, Failure(FailureCode.VALIDATION_FAILED, "The stored original is missing."))

    def _claim(
        self, ref: GenerationRef, stage: Stage, unit: int | None, *, alone: bool
    ) -> tuple[ledger.Claim, Work | None, UnitPlan | None]:
        work = plan = None
        with self._units(ref.tenant_id) as uow:
            claim = uow.ledger.claim(ref, stage, unit, alone=alone)
            if isinstance(claim, Won):
                work = uow.sources.work(ref)
                plan = None if unit is None else uow.ledger.unit(ref, stage, unit)
            uow.commit()
        return claim, work, plan

    def _priority(self, ref: GenerationRef) -> Priority:
        with self._units(ref.tenant_id) as uow:
            return uow.sources.work(ref).priority

    def _work(self, work: Work, plan: UnitPlan | None, lease: Lease) -> Step:
        handler = self._handlers[lease.stage]
        watch = _Progress(self._units, lease, self._faults)
        if plan is not None:
            result = handler.run_unit(work, plan, watch)
            if isinstance(result, Failure):
                return self._refuse(work, lease, result)
            return self._finish_unit(work, lease, result, handler)
        outcome = handler.run(work, watch)
        if isinstance(outcome, Failure):
            return self._refuse(work, lease, outcome)
        if isinstance(outcome, FanOut):
            return self._fan_out(work, lease, outcome)
        return self._finish(work, lease, outcome)

    def _finish(self, work: Work, lease: Lease, outcome: Finish) -> Step:
        def save(uow: UnitOfWork) -> Failure | Stage | None:
            failure = outcome.save(uow)
            if failure is not None:
                return failure
            following = uow.ledger.finish(work.ref, lease.stage, lease.token)
            self._faults.point("result-written", lease.stage)
            uow.commit()
            return following

        following = self._in_transaction(work, save)
        if isinstance(following, Failure):
            return self._fail(work, lease, following)
        self._faults.point("committed", lease.stage)
        return Step(Next.CONTINUE, ended=following is None)

    def _finish_unit(self, work: Work, lease: Lease, outcome: UnitFinish, handler: StageHandler) -> Step:
        unit = lease.unit
        if unit is None:
            raise LookupError("a unit's lease names its unit")

        def save(uow: UnitOfWork) -> Failure | Stage | bool | None:
            output = outcome.save(uow)
            if not uow.ledger.finish_unit(work.ref, lease.stage, unit, lease.token, output):
                self._faults.point("result-written", lease.stage)
                uow.commit()
                return False
            failure = handler.gather(uow, work, uow.ledger.outputs(work.ref, lease.stage))
            if failure is not None:
                return failure
            following = uow.ledger.finish(work.ref, lease.stage, None)
            uow.blobs.release(work.ref.blob_owner)
            self._faults.point("result-written", lease.stage)
            uow.commit()
            return following

        following = self._in_transaction(work, save)
        if isinstance(following, Failure):
            return self._fail(work, lease, following)
        self._faults.point("committed", lease.stage)
        if isinstance(following, Stage):
            return Step(Next.STOP, (Doorbell(work.ref, following, work.priority),))
        return STOP

    def _in_transaction(
        self, work: Work, save: Callable[[UnitOfWork], Failure | Stage | bool | None]
    ) -> Failure | Stage | bool | None:
        for attempt in range(1, COMMIT_TRIES + 1):
            try:
                with self._units(work.ref.tenant_id) as uow:
                    uow.sources.hold(work.ref)
                    return save(uow)
            except TransientError as problem:
                if attempt == COMMIT_TRIES or problem.detail not in _AT_ONCE:
                    raise
        raise AssertionError("the loop returns or raises")

    def _fan_out(self, work: Work, lease: Lease, outcome: FanOut) -> Step:
        with self._units(work.ref.tenant_id) as uow:
            uow.sources.hold(work.ref)
            uow.ledger.fan_out(work.ref, lease.stage, lease.token, outcome.units)
            self._faults.point("result-written", lease.stage)
            uow.commit()
        self._faults.point("committed", lease.stage)
        bells = tuple(Doorbell(work.ref, lease.stage, work.priority, unit.unit, unit.size) for unit in outcome.units)
        return Step(Next.STOP, bells)

    def _refuse(self, work: Work, lease: Lease, failure: Failure) -> Step:
        """A failure; when the sandbox died of it, the document gets one more try first."""
        if failure.died:
            with self._units(work.ref.tenant_id) as uow:
                deaths = uow.ledger.requeue_after_death(work.ref, lease.stage, lease.unit, lease.token)
                if deaths < SANDBOX_DEATHS:
                    uow.commit()
                    log.warning("sandbox.died", stage=lease.stage, source=str(work.ref.source_id), code=failure.code)
                    return Step(Next.STOP, (Doorbell(work.ref, lease.stage, work.priority, lease.unit),))
        return self._fail(work, lease, failure)

    def _fail(self, work: Work, lease: Lease, failure: Failure) -> Step:
        with self._units(work.ref.tenant_id) as uow:
            uow.sources.hold(work.ref)
            uow.ledger.fail(work.ref, lease.stage, lease.unit, lease.token)
            uow.sources.fail(work.ref, failure)
            uow.blobs.release(work.ref.blob_owner)
            uow.commit()
        log.info("document.rejected", stage=lease.stage, source=str(work.ref.source_id), code=failure.code)
        self._faults.point("committed", lease.stage)
        return Step(Next.STOP, ended=True)

    def _defer(self, lease: Lease, problem: TransientError) -> Step:
        log.warning(
            "stage.deferred",
            stage=lease.stage,
            source=str(lease.ref.source_id),
            waiting=problem.dependency,
            why=problem.detail,
        )

        def put_back() -> None:
            with self._units(lease.ref.tenant_id) as uow:
                uow.ledger.defer(
                    lease.ref, lease.stage, lease.unit, lease.token, problem.dependency, problem.retry_after_s
                )
                uow.commit()

        _patiently(put_back)
        return STOP


def _patiently(act: Callable[[], T]) -> T:
    """Do it as soon as Postgres answers. Its restarts must not count as workers that died of their documents."""
    last_try_at = time.monotonic() + AWAY_S
    while True:
        try:
            return act()
        except TransientError as problem:
            if time.monotonic() > last_try_at:
                raise
            log.info("ledger.away", why=problem.detail)
            time.sleep(AWAY_PAUSE_S)
