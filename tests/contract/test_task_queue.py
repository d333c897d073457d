"""What every TaskQueue holds: bells are heard, asking takes no time and never fails, whatever the broker does."""

from __future__ import annotations

import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import pytest

from pipeline import flow
from pipeline.entrypoints.embedded.services import EmbeddedServices
from pipeline.flow import MESSAGE_VERSION, Queue, Stage
from pipeline.ports import Doorbell
from pipeline.types import GenerationRef, Priority
from storage import task_queue
from tests.contract.streets import FLUSH_S, Heard, MemoryStreet, RedisStreet, Street, Switchboard

# What asking may take: the limit of an upload's whole answer is a second.
AT_ONCE_S = 0.1


@pytest.fixture
def on_redis(services: EmbeddedServices) -> Iterator[RedisStreet]:
    opened = RedisStreet(services.redis.url)
    yield opened
    opened.close()


@pytest.fixture(params=["memory", "redis"])
def street(request: pytest.FixtureRequest) -> Street:
    if request.param == "memory":
        return MemoryStreet()
    opened: RedisStreet = request.getfixturevalue("on_redis")
    return opened


@pytest.fixture
def ref() -> GenerationRef:
    return GenerationRef(uuid.uuid4(), uuid.uuid4(), 3)


def test_every_bell_is_heard_once_and_in_order(street: Street, ref: GenerationRef) -> None:
    others = [GenerationRef(ref.tenant_id, uuid.uuid4(), number) for number in range(1, 5)]
    street.queue.ring([Doorbell(one, Stage.REGISTER, Priority.BULK) for one in others[:3]])
    street.queue.ring([Doorbell(others[3], Stage.REGISTER, Priority.BULK)])
    assert street.heard() == [Heard(one, Stage.REGISTER) for one in others]


def test_a_bell_names_its_stage_its_unit_and_whether_it_runs_alone(street: Street, ref: GenerationRef) -> None:
    street.queue.ring(
        [
            Doorbell(ref, Stage.EXTRACT, Priority.BULK, unit=0, unit_pages=16),
            Doorbell(ref, Stage.EXTRACT, Priority.BULK, unit=7, unit_pages=16),
        ]
    )
    street.queue.ring([Doorbell(ref, Stage.OCR, Priority.INTERACTIVE, unit=2, unit_pages=8, alone=True)])
    assert sorted(street.heard(), key=lambda heard: heard.alone) == [
        Heard(ref, Stage.EXTRACT, 0),
        Heard(ref, Stage.EXTRACT, 7),
        Heard(ref, Stage.OCR, 2, alone=True),
    ]


def test_no_bell_is_no_message(street: Street) -> None:
    street.queue.ring([])
    assert (street.heard(), street.admissions(), street.deletions()) == ([], 0, [])


def test_admissions_and_deletions_are_heard(street: Street, ref: GenerationRef) -> None:
    receipts = [uuid.uuid4(), uuid.uuid4()]
    street.queue.ring_admission()
    street.queue.ring_admission()
    for receipt in receipts:
        street.queue.ring_deletion(ref.tenant_id, receipt)
    assert street.admissions() == 2
    assert street.deletions() == [(ref.tenant_id, receipt) for receipt in receipts]
    assert street.heard() == []


def test_several_threads_ring_at_once(street: Street, ref: GenerationRef) -> None:
    def ring(generation: int) -> None:
        for unit in range(10):
            bell = Doorbell(GenerationRef(ref.tenant_id, ref.source_id, generation), Stage.OCR, Priority.BULK, unit)
            street.queue.ring([bell])

    threads = [threading.Thread(target=ring, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    heard = [(one.ref.generation, one.unit) for one in street.heard()]
    assert sorted(heard, key=str) == sorted(((g, u) for g in range(4) for u in range(10)), key=str)


# --- what lies on the broker ---


@pytest.mark.parametrize("priority", Priority)
@pytest.mark.parametrize("stage", Stage)
def test_a_chain_holds_every_stage_from_there_each_on_its_queue(
    on_redis: RedisStreet, ref: GenerationRef, stage: Stage, priority: Priority
) -> None:
    on_redis.queue.ring([Doorbell(ref, stage, priority)])
    (message,) = on_redis.messages()
    tasks = [message.task, *(one["task"] for one in message.chain)]
    assert tasks == [spec.task_name for spec in flow.remaining(stage)]
    queues = [message.queue, *(one["options"]["queue"] for one in message.chain)]
    assert queues == [flow.queue_of(spec.stage, priority) for spec in flow.remaining(stage)]


def test_a_long_unit_waits_with_the_bulk_and_a_lonely_one_for_maintenance(
    on_redis: RedisStreet, ref: GenerationRef
) -> None:
    on_redis.queue.ring(
        [
            Doorbell(ref, Stage.EXTRACT, Priority.INTERACTIVE, unit=0, unit_pages=flow.INTERACTIVE_UNIT_PAGES),
            Doorbell(ref, Stage.EXTRACT, Priority.INTERACTIVE, unit=1, unit_pages=flow.INTERACTIVE_UNIT_PAGES + 1),
            Doorbell(ref, Stage.EMBED, Priority.INTERACTIVE, unit=2),
            Doorbell(ref, Stage.OCR, Priority.INTERACTIVE, unit=3, alone=True),
        ]
    )
    assert {message.arguments["unit"]: message.queue for message in on_redis.messages()} == {
        0: Queue.INTERACTIVE,
        1: Queue.EXTRACT,
        2: Queue.EMBED,
        3: Queue.MAINTENANCE,
    }
    assert [message.chain for message in on_redis.messages()] == [[]] * 4


def test_messages_carry_a_version_and_ids_and_nothing_else(on_redis: RedisStreet, ref: GenerationRef) -> None:
    receipt = uuid.uuid4()
    on_redis.queue.ring([Doorbell(ref, Stage.EXTRACT, Priority.BULK)])
    on_redis.queue.ring([Doorbell(ref, Stage.OCR, Priority.BULK, unit=4, alone=True)])
    on_redis.queue.ring_deletion(ref.tenant_id, receipt)
    on_redis.queue.ring_admission()
    ids = {
        "version": MESSAGE_VERSION,
        "tenant": str(ref.tenant_id),
        "source": str(ref.source_id),
        "generation": ref.generation,
    }
    found = {message.task: message for message in on_redis.messages()}
    assert found["docmill.extract"].arguments == ids
    assert [one["kwargs"] for one in found["docmill.extract"].chain] == [ids] * 5
    assert found["docmill.ocr"].arguments == {**ids, "unit": 4, "alone": True}
    assert found["docmill.delete"].arguments == {
        "version": MESSAGE_VERSION,
        "tenant": str(ref.tenant_id),
        "receipt": str(receipt),
    }
    assert found["docmill.sweep.admission"].arguments == {}
    # What a sweep sends again anyway need not wait for a worker for ever.
    assert all(found[task].headers["expires"] for task in ("docmill.delete", "docmill.sweep.admission"))
    assert {found[task].queue for task in ("docmill.delete", "docmill.sweep.admission")} == {Queue.MAINTENANCE}


# --- a broker that is not there ---


def ring_everything(street: RedisStreet, ref: GenerationRef) -> float:
    """Five bells; the longest that one of the calls took, in seconds."""
    bell = Doorbell(ref, Stage.REGISTER, Priority.INTERACTIVE)
    calls: list[Callable[[], None]] = [
        lambda: street.queue.ring([bell] * 3),
        street.queue.ring_admission,
        lambda: street.queue.ring_deletion(ref.tenant_id, uuid.uuid4()),
    ]
    took = []
    for call in calls:
        began = time.monotonic()
        call()
        took.append(time.monotonic() - began)
    return max(took)


def wait_dropped(street: RedisStreet, count: int) -> None:
    deadline = time.monotonic() + FLUSH_S
    while street.celery.dropped < count:
        assert time.monotonic() < deadline, street.celery.dropped
        time.sleep(0.02)
    assert street.celery.dropped == count


def test_a_broker_that_is_down_or_silent_costs_the_caller_nothing(ref: GenerationRef) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = f"redis://127.0.0.1:{unused.getsockname()[1]}/0"
    # The kernel accepts connections for it; nobody ever answers.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        streets = [RedisStreet(closed), RedisStreet(f"redis://127.0.0.1:{silent.getsockname()[1]}/0")]
        for _ in range(10):
            assert max(ring_everything(street, ref) for street in streets) < AT_ONCE_S
        # What there is no room for is dropped, at once.
        began = time.monotonic()
        streets[1].queue.ring([Doorbell(ref, Stage.REGISTER, Priority.BULK)] * task_queue.WAITING_BELLS)
        assert time.monotonic() - began < 10 * AT_ONCE_S
        assert streets[1].celery.dropped >= 49
        wait_dropped(streets[0], 50)
        wait_dropped(streets[1], 50 + task_queue.WAITING_BELLS)
        # The circuit is open now: nothing is even tried.
        for street in streets:
            before, began = street.celery.dropped, time.monotonic()
            ring_everything(street, ref)
            wait_dropped(street, before + 5)
            assert time.monotonic() - began < 5 * AT_ONCE_S
            street.hang_up()


def test_bells_are_heard_again_once_the_broker_answers(
    services: EmbeddedServices, ref: GenerationRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_queue, "CIRCUIT_OPEN_S", 0.2)
    address = urlsplit(services.redis.url)
    assert address.hostname
    assert address.port
    board = Switchboard(address.hostname, address.port)
    street = RedisStreet(services.redis.url.replace(address.netloc.rpartition("@")[2], urlsplit(board.url).netloc))
    street.queue.ring([Doorbell(ref, Stage.REGISTER, Priority.BULK)])
    street.celery.flush(FLUSH_S)
    assert street.celery.dropped == 1
    board.put_through()
    time.sleep(0.3)
    street.queue.ring([Doorbell(ref, Stage.CHUNK, Priority.BULK)])
    assert street.heard() == [Heard(ref, Stage.CHUNK)]
    street.celery.check()
    street.close()
    board.close()
