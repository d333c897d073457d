"""The use cases of deletion: hidden first, rung for afterwards; rows before objects when it is carried out."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import cast

import pytest

from pipeline.errors import NotFound, TransientError
from pipeline.services.deletion import DeletionRequests, DeletionService
from pipeline.testing.content import MemoryContentStore
from pipeline.testing.task_queue import MemoryTaskQueue
from pipeline.types import FileState
from pipeline.unit_of_work import DeletionWork, UnitOfWorkFactory
from tests.unit.services.house import ANA, BEN, TENANT, House
from tests.unit.services.test_files import upload


class Listening(MemoryTaskQueue):
    """Looks, at each ring, whether what it is rung for is there already."""

    def __init__(self, house: House) -> None:
        super().__init__()
        self._house = house

    def ring_deletion(self, tenant_id: uuid.UUID, receipt_id: uuid.UUID) -> None:
        assert receipt_id in self._house.stores.deletions.receipts
        super().ring_deletion(tenant_id, receipt_id)


@pytest.fixture
def house() -> House:
    made = House()
    made.queue = Listening(made)
    return made


def requests(house: House) -> DeletionRequests:
    return DeletionRequests(house.units, house.policy, house.queue)


def test_a_source_is_hidden_before_its_deletion_is_rung_for(house: House) -> None:
    source_id = house.source()
    receipt_id = requests(house).delete_source(ANA, source_id, with_file=True)
    assert source_id not in house.stores.sources.rows
    assert house.queue.deletions == [(TENANT, receipt_id)]
    assert requests(house).receipt(ANA, receipt_id).before == {"files": 1}


def test_a_file_goes_with_its_sources(house: House) -> None:
    stored = upload(house)
    receipt_id = requests(house).delete_file(ANA, stored.file.file_id)
    assert house.stores.sources.rows == {}
    assert house.queue.deletions == [(TENANT, receipt_id)]


def test_what_one_may_not_see_one_may_not_delete(house: House) -> None:
    source_id, file_id = house.source(), upload(house).file.file_id
    before = dict(house.stores.sources.rows)
    for principal in (BEN, replace(ANA, narrowed_to=("team:red",)), replace(ANA, narrowed_to=())):
        with pytest.raises(NotFound):
            requests(house).delete_source(principal, source_id, with_file=False)
        with pytest.raises(NotFound):
            requests(house).delete_file(principal, file_id)
    with pytest.raises(NotFound):
        requests(house).delete_source(ANA, uuid.uuid4(), with_file=False)
    assert (house.queue.deletions, house.stores.sources.rows) == ([], before)
    assert house.stores.files.states()[file_id] is FileState.STORED


def test_a_receipt_is_for_those_it_concerns(house: House) -> None:
    receipt_id = requests(house).delete_source(ANA, house.source(), with_file=False)
    with pytest.raises(NotFound):
        requests(house).receipt(BEN, receipt_id)
    with pytest.raises(NotFound):
        requests(house).receipt(ANA, uuid.uuid4())


# --- carrying it out ---


class Receipts:
    """The rows of one deletion, noting what is done to them and when."""

    def __init__(self, keys: tuple[str, ...], done: list[str]) -> None:
        self._keys = keys
        self._done = done
        self.complete = False
        self.deletions = self

    def open_receipt(self, receipt_id: uuid.UUID) -> DeletionWork | None:
        return None if self.complete else DeletionWork(self._keys)

    def purge(self, receipt_id: uuid.UUID) -> None:
        self._done.append("purge")

    def close(self, receipt_id: uuid.UUID) -> None:
        self._done.append("close")
        self.complete = True

    def commit(self) -> None:
        self._done.append("commit")


class Store(MemoryContentStore):
    def __init__(self, done: list[str]) -> None:
        super().__init__()
        self._done = done
        self.fails = False

    def delete(self, key: str) -> None:
        if self.fails:
            raise TransientError("s3", "no answer")
        self._done.append(f"delete {key}")


def test_rows_go_before_objects_and_the_receipt_is_closed_last() -> None:
    done: list[str] = []
    receipts, store = Receipts(("a", "b"), done), Store(done)

    @contextmanager
    def units(tenant_id: uuid.UUID) -> Iterator[Receipts]:
        assert tenant_id == TENANT
        yield receipts

    service = DeletionService(cast("UnitOfWorkFactory", units), store)
    store.fails = True
    with pytest.raises(TransientError):
        service.carry_out(TENANT, uuid.uuid4())
    assert (done, receipts.complete) == (["purge", "commit"], False)
    store.fails = False
    done.clear()
    service.carry_out(TENANT, uuid.uuid4())
    assert done == ["purge", "commit", "delete a", "delete b", "close", "commit"]
    done.clear()
    service.carry_out(TENANT, uuid.uuid4())
    assert done == []
