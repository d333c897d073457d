"""Values of the ledger: what a claim answers, what a stage works on, what a fan-out holds."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.flow import Stage
from pipeline.types import GenerationRef, Priority


@dataclass(frozen=True, slots=True)
class Won:
    """The stage (or unit) is ours until the lease ends; every write names ``token``.

    ``lost_leases`` and ``lost_alone`` count workers that died holding it; ``sandbox_deaths`` counts parser deaths.
    """

    token: uuid.UUID
    attempts: int
    lost_leases: int
    lost_alone: int
    sandbox_deaths: int


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """It succeeded before: the chain goes on, which heals a crash between commit and publish."""


@dataclass(frozen=True, slots=True)
class HeldByAnother:
    """Another's lease is live, or the work waits for its time: acknowledge and stop."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The predecessor has not succeeded, or the generation is superseded, removed, cancelled or ended."""

    why: str


@dataclass(frozen=True, slots=True)
class MustRunAlone:
    """It lost too many workers in company; ring it again for the maintenance queue."""


Claim = Won | AlreadyDone | HeldByAnother | Refused | MustRunAlone


@dataclass(frozen=True, slots=True)
class Work:
    """Everything a stage needs to know of its generation; no bytes."""

    ref: GenerationRef
    priority: Priority
    indexed: bool
    title: str
    filename: str
    declared_type: str
    media_type: str
    content_key: str
    sha256: str
    byte_size: int
    file_version: int


@dataclass(frozen=True, slots=True)
class UnitPlan:
    """One unit of a fan-out: pages (or chunk ordinals) ``first``..``last``, or exactly ``items``."""

    unit: int
    first: int
    last: int
    items: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        return len(self.items) if self.items is not None else self.last - self.first + 1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A generation waiting for admission, with its place of work."""

    ref: GenerationRef
    priority: Priority


@dataclass(frozen=True, slots=True)
class Overdue:
    """A stage or unit whose lease expired or whose doorbell was lost."""

    ref: GenerationRef
    stage: Stage
    unit: int | None


@dataclass(frozen=True, slots=True)
class Backlog:
    """What admission decides on: generations in flight and the next to admit, in order."""

    in_flight: int
    in_flight_of: dict[uuid.UUID, int]
    waiting: Sequence[Candidate]
