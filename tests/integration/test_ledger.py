"""The ledger's rules on the real database: four answers, fencing, fan-in, ordered publication."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from pipeline import flow
from pipeline.errors import Failure, FailureCode, LeaseLost, SourceGone
from pipeline.flow import Stage
from pipeline.ledger import AlreadyDone, HeldByAnother, MustRunAlone, Refused, UnitPlan, Won
from pipeline.types import GenerationRef
from pipeline.unit_of_work import PublishedFacts
from tests.conftest import DatabaseUrls
from tests.state import State, open_state

FACTS = PublishedFacts(chunk_count=1, term_total=3, page_count=0, confidence=None, low_confidence=False)


@pytest.fixture
def state(database_urls: DatabaseUrls) -> Iterator[State]:
    opened = open_state(database_urls)
    yield opened
    opened.worker.dispose()
    opened.superuser.dispose()


def test_a_claim_is_won_once_and_done_after_it_succeeded(state: State) -> None:
    ref = state.admitted()
    won = state.claimed(ref, Stage.REGISTER)
    with state.units(ref.tenant_id) as uow:
        assert isinstance(uow.ledger.claim(ref, Stage.REGISTER, None, alone=False), HeldByAnother)
        assert uow.ledger.finish(ref, Stage.REGISTER, won.token) is Stage.EXTRACT
        uow.commit()
    with state.units(ref.tenant_id) as uow:
        assert isinstance(uow.ledger.claim(ref, Stage.REGISTER, None, alone=False), AlreadyDone)
    assert state.stages(ref) == {Stage.REGISTER: "succeeded", Stage.EXTRACT: "queued"}


def test_no_stage_starts_before_its_predecessor_committed(state: State) -> None:
    ref = state.admitted()
    state.claimed(ref, Stage.REGISTER)
    with state.units(ref.tenant_id) as uow:
        for spec in flow.FLOW[1:]:
            assert isinstance(uow.ledger.claim(ref, spec.stage, None, alone=False), Refused), spec.stage


def test_a_message_delivered_twice_at_once_has_one_winner(state: State) -> None:
    for _ in range(20):
        ref = state.admitted()
        barrier = threading.Barrier(2)
        answers: list[object] = []

        def deliver(
            ref: GenerationRef = ref, barrier: threading.Barrier = barrier, answers: list[object] = answers
        ) -> None:
            barrier.wait()
            with state.units(ref.tenant_id) as uow:
                answers.append(uow.ledger.claim(ref, Stage.REGISTER, None, alone=False))
                uow.commit()

        threads = [threading.Thread(target=deliver) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(type(answer).__name__ for answer in answers) == ["HeldByAnother", "Won"]


def test_a_waiting_generation_is_not_claimed_before_admission(state: State) -> None:
    ref = state.source()
    with state.units(ref.tenant_id) as uow:
        assert isinstance(uow.ledger.claim(ref, Stage.REGISTER, None, alone=False), Refused)


def test_a_zombie_changes_nothing_after_another_finished(state: State) -> None:
    ref = state.admitted()
    zombie = state.claimed(ref, Stage.REGISTER)
    state.expire(ref)
    heir = state.claimed(ref, Stage.REGISTER)
    assert heir.lost_leases == 1
    with state.units(ref.tenant_id) as uow:
        uow.ledger.finish(ref, Stage.REGISTER, heir.token)
        uow.commit()
    with state.units(ref.tenant_id) as uow:
        assert not uow.ledger.beat(ref, Stage.REGISTER, None, zombie.token)
        with pytest.raises(LeaseLost):
            uow.ledger.finish(ref, Stage.REGISTER, zombie.token)
        with pytest.raises(LeaseLost):
            uow.ledger.fail(ref, Stage.REGISTER, None, zombie.token)
        uow.ledger.defer(ref, Stage.REGISTER, None, zombie.token, "s3", None)
        uow.commit()
    assert state.stages(ref)[Stage.REGISTER] == "succeeded"


def test_a_heartbeat_keeps_the_lease(state: State) -> None:
    ref = state.admitted()
    won = state.claimed(ref, Stage.REGISTER)
    state.expire(ref)
    with state.units(ref.tenant_id) as uow:
        assert uow.ledger.beat(ref, Stage.REGISTER, None, won.token)
        uow.commit()
    assert ref not in [overdue.ref for overdue in state.finder.overdue(100)]


def test_the_sweep_finds_an_expired_lease_counts_it_and_rings(state: State) -> None:
    ref = state.admitted()
    state.claimed(ref, Stage.REGISTER)
    state.expire(ref)
    found = [overdue for overdue in state.finder.overdue(100) if overdue.ref == ref]
    assert len(found) == 1
    with state.units(ref.tenant_id) as uow:
        bell = uow.ledger.reclaim(found[0])
        assert bell is not None
        assert (bell.stage, bell.alone) == (Stage.REGISTER, False)
        uow.commit()
    assert state.claimed(ref, Stage.REGISTER).lost_leases == 1


def test_after_two_losses_it_runs_alone_and_only_losses_alone_count_on(state: State) -> None:
    ref = state.admitted()
    for _ in range(2):
        state.claimed(ref, Stage.REGISTER)
        state.expire(ref)
        with state.units(ref.tenant_id) as uow:
            for overdue in (found for found in state.finder.overdue(100) if found.ref == ref):
                uow.ledger.reclaim(overdue)
            uow.commit()
    with state.units(ref.tenant_id) as uow:
        assert isinstance(uow.ledger.claim(ref, Stage.REGISTER, None, alone=False), MustRunAlone)
    won = state.claimed(ref, Stage.REGISTER, alone=True)
    assert (won.lost_leases, won.lost_alone) == (2, 0)
    state.expire(ref)
    assert state.claimed(ref, Stage.REGISTER, alone=True).lost_alone == 1


def test_transient_trouble_puts_it_back_for_later(state: State) -> None:
    ref = state.admitted()
    won = state.claimed(ref, Stage.REGISTER)
    with state.units(ref.tenant_id) as uow:
        uow.ledger.defer(ref, Stage.REGISTER, None, won.token, "s3", None)
        uow.commit()
    with state.units(ref.tenant_id) as uow:
        assert isinstance(uow.ledger.claim(ref, Stage.REGISTER, None, alone=False), HeldByAnother)
    waits = state.sql(
        "SELECT waiting_for, available_at > clock_timestamp() FROM ingest_stages WHERE source_id = :s", s=ref.source_id
    )
    assert waits == [("s3", True)]


def test_all_units_released_at_once_have_exactly_one_continuation(database_urls: DatabaseUrls) -> None:
    """A fan-in that counts rows has no last one when two units finish together; 300 stages of two units each."""
    state = open_state(database_urls, pool_size=6)
    ref = state.admitted()
    state.advance_to(ref, Stage.EXTRACT)
    rounds = 300
    for round_ in range(rounds):
        won = state.claimed(ref, Stage.EXTRACT)
        with state.units(ref.tenant_id) as uow:
            uow.ledger.fan_out(ref, Stage.EXTRACT, won.token, [UnitPlan(0, 1, 16), UnitPlan(1, 17, 32)])
            uow.commit()
        tokens = [state.claimed(ref, Stage.EXTRACT, unit).token for unit in (0, 1)]
        barrier = threading.Barrier(2)
        last: list[bool] = []

        def finish(unit: int, tokens: list = tokens, barrier: threading.Barrier = barrier, last: list = last) -> None:  # type: ignore[type-arg]
            with state.units(ref.tenant_id) as uow:
                uow.sources.hold(ref)
                barrier.wait()
                was_last = uow.ledger.finish_unit(ref, Stage.EXTRACT, unit, tokens[unit], None)
                if was_last:
                    uow.ledger.finish(ref, Stage.EXTRACT, None)
                uow.commit()
                last.append(was_last)

        threads = [threading.Thread(target=finish, args=(unit,)) for unit in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(last) == [False, True], f"round {round_}"
        assert state.stages(ref) == {Stage.REGISTER: "succeeded", Stage.EXTRACT: "succeeded", Stage.OCR: "queued"}
        state.sql("DELETE FROM ingest_units WHERE source_id = :s", s=ref.source_id)
        state.sql("DELETE FROM ingest_stages WHERE source_id = :s AND stage = 'ocr'", s=ref.source_id)
        state.sql(
            "UPDATE ingest_stages SET status = 'queued' WHERE source_id = :s AND stage = 'extract'", s=ref.source_id
        )
    state.worker.dispose()
    state.superuser.dispose()


def test_a_fanned_stage_has_no_lease_and_its_units_do(state: State) -> None:
    ref = state.admitted()
    state.advance_to(ref, Stage.EXTRACT)
    won = state.claimed(ref, Stage.EXTRACT)
    with state.units(ref.tenant_id) as uow:
        assert isinstance(uow.ledger.claim(ref, Stage.EXTRACT, 0, alone=False), HeldByAnother)
        uow.ledger.fan_out(ref, Stage.EXTRACT, won.token, [UnitPlan(0, 1, 16), UnitPlan(1, 17, 40)])
        uow.commit()
    with state.units(ref.tenant_id) as uow:
        assert isinstance(uow.ledger.claim(ref, Stage.EXTRACT, None, alone=False), HeldByAnother)
        with pytest.raises(LeaseLost):
            uow.ledger.fan_out(ref, Stage.EXTRACT, won.token, [UnitPlan(2, 1, 2)])
    unit = state.claimed(ref, Stage.EXTRACT, 1)
    state.expire(ref)
    found = [(overdue.stage, overdue.unit) for overdue in state.finder.overdue(100) if overdue.ref == ref]
    assert found == [(Stage.EXTRACT, 1)]
    with state.units(ref.tenant_id) as uow:
        assert not uow.ledger.finish_unit(ref, Stage.EXTRACT, 1, unit.token, "digest")
        assert uow.ledger.outputs(ref, Stage.EXTRACT) == ("digest",)
        uow.commit()
    progress = state.sql(
        "SELECT progress_done, progress_total FROM ingest_stages WHERE source_id = :s AND stage = 'extract'",
        s=ref.source_id,
    )
    assert progress == [(24, 40)]


def test_a_removed_source_refuses_to_be_finished_and_nothing_comes_back(state: State) -> None:
    ref = state.admitted()
    won = state.claimed(ref, Stage.REGISTER)
    with state.units(ref.tenant_id) as uow:
        receipt = uow.deletions.remove_source(ref.source_id, ("user:ana",), with_file=True)
        uow.commit()
    with state.units(ref.tenant_id) as uow, pytest.raises(SourceGone):
        uow.sources.hold(ref)
    with state.units(ref.tenant_id) as uow:
        assert isinstance(uow.ledger.claim(ref, Stage.REGISTER, None, alone=False), Refused)
        uow.deletions.purge(receipt)
        uow.commit()
    assert state.sql("SELECT count(*) FROM generations WHERE source_id = :s", s=ref.source_id) == [(0,)]
    assert won.attempts == 1


def test_publications_are_ordered(state: State) -> None:
    old = state.admitted()
    state.advance_to(old, Stage.PUBLISH)
    state.sql("UPDATE sources SET desired_generation = 2 WHERE source_id = :s", s=old.source_id)
    state.sql(
        "INSERT INTO generations (tenant_id, source_id, generation, file_version, priority, status)"
        " VALUES (:t, :s, 2, 2, 'interactive', 'ingesting')",
        t=old.tenant_id,
        s=old.source_id,
    )
    new = GenerationRef(old.tenant_id, old.source_id, 2)
    with state.units(old.tenant_id) as uow:
        assert uow.sources.publish(new, FACTS)
        uow.commit()
    with state.units(old.tenant_id) as uow:
        with pytest.raises(SourceGone):
            uow.sources.hold(old)
        assert not uow.sources.publish(old, FACTS)
        uow.commit()
    assert state.sql("SELECT published_generation FROM sources WHERE source_id = :s", s=old.source_id) == [(2,)]


def test_a_failed_document_ends_and_frees_its_content_for_another_try(state: State) -> None:
    ref = state.admitted(content=b"same")
    won = state.claimed(ref, Stage.REGISTER)
    with state.units(ref.tenant_id) as uow:
        uow.ledger.fail(ref, Stage.REGISTER, None, won.token)
        uow.sources.fail(ref, Failure(FailureCode.MALFORMED, "It is broken."))
        uow.commit()
    with state.units(ref.tenant_id) as uow:
        source = uow.sources.get(ref.source_id, ("user:ana",))
    assert source.status == "failed"
    assert source.latest.failure == Failure(FailureCode.MALFORMED, "It is broken.")
    again = state.source(b"same")
    assert again.source_id != ref.source_id


def test_equal_bytes_get_one_source_and_a_link_each(state: State) -> None:
    first, second = state.source(b"equal"), state.source(b"equal")
    assert first.source_id == second.source_id
    assert state.sql("SELECT count(*) FROM source_files WHERE source_id = :s", s=first.source_id) == [(2,)]
    other_user = state.source(b"equal", user="ben")
    other_tenant = state.source(b"equal", tenant_id=state.another_tenant())
    assert len({first.source_id, other_user.source_id, other_tenant.source_id}) == 3


def test_sandbox_deaths_are_counted_and_put_back_at_once(state: State) -> None:
    ref = state.admitted()
    won = state.claimed(ref, Stage.REGISTER)
    with state.units(ref.tenant_id) as uow:
        assert uow.ledger.requeue_after_death(ref, Stage.REGISTER, None, won.token) == 1
        uow.commit()
    again = state.claimed(ref, Stage.REGISTER)
    assert isinstance(again, Won)
    assert (again.sandbox_deaths, again.lost_leases, again.attempts) == (1, 0, 2)
