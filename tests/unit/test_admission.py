"""Who is let in next."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from pipeline.ledger import Backlog, Candidate
from pipeline.services.admission import choose
from pipeline.types import GenerationRef, Priority

A, B = uuid.uuid4(), uuid.uuid4()


def waiting(*entries: tuple[uuid.UUID, Priority]) -> list[Candidate]:
    return [Candidate(GenerationRef(tenant, uuid.uuid4(), 1), priority) for tenant, priority in entries]


def backlog(candidates: Sequence[Candidate], **in_flight: int) -> Backlog:
    of = {A: in_flight.get("a", 0), B: in_flight.get("b", 0)}
    return Backlog(sum(of.values()), of, candidates)


def test_interactive_goes_before_bulk_whatever_its_age() -> None:
    bulk, interactive = candidates = waiting((A, Priority.BULK), (A, Priority.INTERACTIVE))
    assert choose(backlog(candidates), 2) == (interactive, bulk)


def test_the_oldest_goes_first_among_equals() -> None:
    candidates = waiting(*[(A, Priority.BULK)] * 3)
    assert choose(backlog(candidates), 2) == tuple(candidates[:2])


def test_the_tenant_with_fewest_in_flight_goes_first() -> None:
    of_a, of_b = candidates = waiting((A, Priority.BULK), (B, Priority.BULK))
    assert choose(backlog(candidates, a=1), 2) == (of_b,)
    assert choose(backlog(candidates, b=1), 2) == (of_a,)


def test_no_tenant_takes_more_than_half_while_another_waits() -> None:
    candidates = waiting(*[(A, Priority.BULK)] * 6, (B, Priority.BULK))
    chosen = choose(backlog(candidates), 4)
    assert [candidate.ref.tenant_id for candidate in chosen] == [A, B, A, A]
    assert choose(backlog(candidates, a=2), 4)[0].ref.tenant_id == B


def test_a_tenant_alone_takes_everything() -> None:
    candidates = waiting(*[(A, Priority.BULK)] * 6)
    assert len(choose(backlog(candidates), 4)) == 4


def test_nothing_is_admitted_beyond_capacity() -> None:
    assert choose(backlog(waiting((A, Priority.INTERACTIVE)), b=4), 4) == ()
    assert choose(backlog([]), 4) == ()
