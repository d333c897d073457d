"""A lease is kept for as long as it is held, is lost once, and outlives trouble with the database."""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from pipeline.errors import LeaseLost, TransientError
from pipeline.flow import Stage
from pipeline.services.leases import Lease, LeaseKeeper
from pipeline.types import GenerationRef
from pipeline.unit_of_work import UnitOfWorkFactory

INTERVAL_S = 0.01


class Register:
    """A ledger that counts committed beats by token and answers as it is told."""

    def __init__(self) -> None:
        self.beats: Counter[uuid.UUID] = Counter()
        self.taken_over: set[uuid.UUID] = set()
        self.trouble: Exception | None = None
        self.ledger = self
        self.pending: list[uuid.UUID] = []

    def beat(self, ref: GenerationRef, stage: Stage, unit: int | None, token: uuid.UUID) -> bool:
        if self.trouble is not None:
            raise self.trouble
        self.pending.append(token)
        return token not in self.taken_over

    def commit(self) -> None:
        self.beats.update(self.pending)
        self.pending.clear()

    @property
    def units(self) -> UnitOfWorkFactory:
        @contextmanager
        def unit(tenant_id: uuid.UUID) -> Iterator[Register]:
            self.pending.clear()
            yield self

        return cast("UnitOfWorkFactory", unit)


@pytest.fixture
def register() -> Register:
    return Register()


@pytest.fixture
def keeper(register: Register) -> LeaseKeeper:
    return LeaseKeeper(register.units, INTERVAL_S)


def lease(unit: int | None = None) -> Lease:
    return Lease(GenerationRef(uuid.uuid4(), uuid.uuid4(), 1), Stage.EXTRACT, unit, uuid.uuid4())


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.002)


def test_it_beats_while_it_is_held_and_not_after(register: Register, keeper: LeaseKeeper) -> None:
    held = lease()
    with keeper.hold(held):
        wait_for(lambda: register.beats[held.token] >= 3)
        held.check()
    time.sleep(3 * INTERVAL_S)
    after = register.beats[held.token]
    time.sleep(5 * INTERVAL_S)
    assert register.beats[held.token] == after
    assert not held.lost.is_set()


def test_it_is_let_go_when_the_work_fails(register: Register, keeper: LeaseKeeper) -> None:
    held = lease()

    def work() -> None:
        with keeper.hold(held):
            wait_for(lambda: register.beats[held.token])
            raise ValueError("the work failed")

    with pytest.raises(ValueError, match="work"):
        work()
    time.sleep(3 * INTERVAL_S)
    after = register.beats[held.token]
    time.sleep(5 * INTERVAL_S)
    assert register.beats[held.token] == after


def test_several_are_kept_and_the_one_that_was_taken_over_is_told(register: Register, keeper: LeaseKeeper) -> None:
    first, second = lease(), lease(unit=4)
    with keeper.hold(first), keeper.hold(second):
        wait_for(lambda: register.beats[first.token] and register.beats[second.token])
        register.taken_over.add(second.token)
        wait_for(second.lost.is_set)
        with pytest.raises(LeaseLost, match="extract"):
            second.check()
        beats = register.beats[first.token]
        wait_for(lambda: register.beats[first.token] > beats + 2)
        first.check()


def test_a_database_that_is_away_costs_no_lease(register: Register, keeper: LeaseKeeper) -> None:
    held = lease()
    with keeper.hold(held):
        wait_for(lambda: register.beats[held.token])
        register.trouble = TransientError("postgres", "connection lost")
        time.sleep(5 * INTERVAL_S)
        held.check()
        beats = register.beats[held.token]
        register.trouble = None
        wait_for(lambda: register.beats[held.token] > beats)
        held.check()


def test_a_beat_that_comes_too_late_takes_nothing_away(register: Register, keeper: LeaseKeeper) -> None:
    """The stage has finished, which ends the lease in the ledger, while a beat was on its way."""
    held = lease()
    began, finished = threading.Event(), threading.Event()

    def slow(ref: GenerationRef, stage: Stage, unit: int | None, token: uuid.UUID) -> bool:
        began.set()
        assert finished.wait(5)
        return False

    register.beat = slow  # type: ignore[method-assign]
    with keeper.hold(held):
        assert began.wait(5)
    finished.set()
    time.sleep(5 * INTERVAL_S)
    assert not held.lost.is_set()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_bug_costs_the_leases_of_its_time_and_no_later_one(register: Register, keeper: LeaseKeeper) -> None:
    register.trouble = LookupError("a bug")
    with keeper.hold(lease()):
        time.sleep(5 * INTERVAL_S)
    register.trouble = None
    held = lease()
    with keeper.hold(held):
        wait_for(lambda: register.beats[held.token] >= 2)
