"""What every BlobStore holds: content names a value, owners keep it, nothing that is owned is lost."""

from __future__ import annotations

import hashlib
import random
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from pipeline.errors import NotFound
from tests.contract.stores import House, PostgresHouse
from tests.state import State

VALUE = b'{"words": ["harbour", "quay"]}'


def put(house: House, tenant: uuid.UUID, value: bytes, owner: str) -> str:
    with house.open(tenant) as stores:
        return stores.blobs.put(value, owner=owner)


def get(house: House, tenant: uuid.UUID, digest: str) -> bytes | None:
    with house.open(tenant) as stores:
        try:
            return stores.blobs.get(digest)
        except NotFound:
            return None


def release(house: House, tenant: uuid.UUID, owner: str) -> int:
    with house.open(tenant) as stores:
        return stores.blobs.release(owner)


@pytest.mark.parametrize("value", [b"", b"{}", VALUE, random.Random(1).randbytes(3_000_000)])
def test_a_value_is_named_by_its_bytes_and_comes_back(house: House, value: bytes) -> None:
    tenant = house.tenant()
    digest = put(house, tenant, value, "a")
    assert digest == hashlib.sha256(value).hexdigest()
    assert put(house, tenant, value, "a") == put(house, tenant, value, "b") == digest
    assert get(house, tenant, digest) == value


def test_what_was_never_put_is_not_found(house: House) -> None:
    tenant, other = house.tenant(), house.tenant()
    digest = put(house, other, VALUE, "a")
    with house.open(tenant) as stores, pytest.raises(NotFound):
        stores.blobs.get(digest)
    assert release(house, tenant, "a") == 0
    assert get(house, other, digest) == VALUE


def test_release_takes_only_what_nobody_else_owns(house: House) -> None:
    tenant = house.tenant()
    shared, own = put(house, tenant, b"shared", "a"), put(house, tenant, b"own", "a")
    put(house, tenant, b"shared", "b")
    kept = put(house, tenant, b"kept", "b")
    assert release(house, tenant, "a") == 1
    assert [get(house, tenant, digest) for digest in (own, shared, kept)] == [None, b"shared", b"kept"]
    assert release(house, tenant, "a") == 0
    assert release(house, tenant, "b") == 2
    assert get(house, tenant, shared) is None


def test_a_released_value_can_be_put_again(house: House) -> None:
    tenant = house.tenant()
    with house.open(tenant) as stores:
        digest = stores.blobs.put(VALUE, owner="a")
        assert stores.blobs.release("a") == 1
        stores.blobs.put(VALUE, owner="a")
    assert get(house, tenant, digest) == VALUE


def test_owners_that_come_and_go_at_once_lose_nothing_and_leave_nothing(house: House) -> None:
    tenant = house.tenant()
    values = [f"value {number}".encode() for number in range(3)]

    def live(owner: str) -> None:
        drawn = random.Random(owner)
        for _ in range(12):
            digests = {put(house, tenant, value, owner): value for value in drawn.sample(values, 2)}
            for digest, value in digests.items():
                assert get(house, tenant, digest) == value
            release(house, tenant, owner)

    with ThreadPoolExecutor(4) as threads:
        for done in [threads.submit(live, f"owner-{number}") for number in range(4)]:
            done.result()
    assert [get(house, tenant, hashlib.sha256(value).hexdigest()) for value in values] == [None] * 3


# --- what only transactions can do ---


@pytest.fixture
def postgres(state: State) -> PostgresHouse:
    return PostgresHouse(state)


def wait_for_a_lock(postgres: PostgresHouse) -> None:
    deadline = time.monotonic() + 10
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    while postgres.state.sql(waiting) == [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_release_waits_for_another_owners_put_and_spares_the_value(postgres: PostgresHouse) -> None:
    tenant = postgres.tenant()
    digest = put(postgres, tenant, VALUE, "first")
    with ThreadPoolExecutor(1) as threads:
        with postgres.open(tenant) as stores:
            stores.blobs.put(VALUE, owner="second")
            gone = threads.submit(release, postgres, tenant, "first")
            wait_for_a_lock(postgres)
        assert gone.result() == 0
    assert get(postgres, tenant, digest) == VALUE
    assert release(postgres, tenant, "second") == 1


def test_a_put_waits_for_a_release_and_stores_the_value_anew(postgres: PostgresHouse) -> None:
    tenant = postgres.tenant()
    digest = put(postgres, tenant, VALUE, "first")
    with ThreadPoolExecutor(1) as threads:
        with postgres.open(tenant) as stores:
            assert stores.blobs.release("first") == 1
            again = threads.submit(put, postgres, tenant, VALUE, "second")
            wait_for_a_lock(postgres)
        assert again.result() == digest
    assert get(postgres, tenant, digest) == VALUE


def test_the_last_of_two_releases_at_once_takes_the_value(postgres: PostgresHouse) -> None:
    tenant = postgres.tenant()
    digest = put(postgres, tenant, VALUE, "first")
    put(postgres, tenant, VALUE, "second")
    with ThreadPoolExecutor(1) as threads:
        with postgres.open(tenant) as stores:
            assert stores.blobs.release("first") == 0
            last = threads.submit(release, postgres, tenant, "second")
            wait_for_a_lock(postgres)
        assert last.result() == 1
    assert get(postgres, tenant, digest) is None


def test_what_is_not_committed_is_not_stored(postgres: PostgresHouse) -> None:
    tenant = postgres.tenant()
    with postgres.state.units(tenant) as uow:
        digest = uow.blobs.put(VALUE, owner="a")
    assert get(postgres, tenant, digest) is None


def test_values_are_compressed(postgres: PostgresHouse) -> None:
    tenant = postgres.tenant()
    put(postgres, tenant, VALUE * 10_000, "a")
    rows = postgres.state.sql("SELECT octet_length(body), byte_size FROM blobs WHERE tenant_id = :t", t=tenant)
    ((stored, size),) = rows
    assert size == len(VALUE) * 10_000
    assert isinstance(stored, int)
    assert stored < len(VALUE) * 200
