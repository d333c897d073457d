"""What a stage handler answers: finish, fan out, or a failure. Saving happens in the runner's transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pipeline.errors import Failure
from pipeline.ledger import UnitPlan, Work
from pipeline.unit_of_work import UnitOfWork


@dataclass(frozen=True, slots=True)
class Finish:
    """The stage's result is ready; ``save`` writes it inside the finishing transaction, or refuses it."""

    save: Callable[[UnitOfWork], Failure | None]


@dataclass(frozen=True, slots=True)
class FanOut:
    """The stage's work is in these units."""

    units: Sequence[UnitPlan]


@dataclass(frozen=True, slots=True)
class UnitFinish:
    """A unit's result is ready; ``save`` writes it and returns the digest of what :meth:`gather` needs, if anything."""

    save: Callable[[UnitOfWork], str | None]


class Watch(Protocol):
    """What a handler tells while it works."""

    def step(self, done: int, total: int) -> None:
        """Record progress. Raises LeaseLost or SourceGone when going on is pointless."""

    def point(self, name: str) -> None:
        """Pass a named point of the stage, where a fault test may interfere."""


class StageHandler(Protocol):
    def run(self, work: Work, watch: Watch) -> Finish | FanOut | Failure:
        """Do the stage, or say how it divides."""

    def run_unit(self, work: Work, plan: UnitPlan, watch: Watch) -> UnitFinish | Failure:
        """Do one unit."""

    def gather(self, uow: UnitOfWork, work: Work, outputs: Sequence[str]) -> Failure | None:
        """Join the units' outputs, inside the transaction of the last one."""


class Undivided:
    """Base of handlers whose stage is always done in one piece."""

    def run_unit(self, work: Work, plan: UnitPlan, watch: Watch) -> UnitFinish | Failure:  # noqa: ARG002 - the port's shape
        raise LookupError(f"this stage has no units, asked for {plan.unit} of {work.ref.source_id}")

    def gather(self, uow: UnitOfWork, work: Work, outputs: Sequence[str]) -> Failure | None:  # noqa: ARG002 - likewise
        raise LookupError(f"this stage has no units to gather for {work.ref.source_id}")


def nothing_to_save(_: UnitOfWork) -> None:
    """The ``save`` of a stage that had nothing to do."""
