"""``Idempotency-Key`` on every POST."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pipeline.errors import TransientError
from pipeline.services.idempotency import Answer, IdempotencyService
from pipeline.types import Principal
from tests.integration.gateway.conftest import Caller, Gateway

KEY = {"Idempotency-Key": "6f1c-key"}


def test_a_repeated_upload_is_answered_the_same_and_stored_once(ana: Caller) -> None:
    first = ana.upload(b"once", headers=KEY)
    second = ana.upload(b"once", headers=KEY)
    assert (first.status_code, second.status_code) == (201, 201)
    assert second.json() == first.json()
    assert len(ana.get("/v1/files").json()["items"]) == 1


@pytest.mark.parametrize(
    "other", [{"content": b"twice"}, {"filename": "b.txt"}, {"ingest": "none"}, {"media_type": "text/markdown"}]
)
def test_another_body_is_refused(ana: Caller, other: dict[str, Any]) -> None:
    ana.upload(b"once", headers=KEY)
    answer = ana.upload(**{"content": b"once", "headers": KEY, **other})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_keys_are_each_callers_own(gateway: Gateway) -> None:
    tenant = gateway.tenant()
    for caller in (gateway.caller(tenant), gateway.caller(tenant, "ben"), gateway.caller()):
        assert caller.upload(b"text of " + caller.user.encode(), headers=KEY).json()["subject"] == f"user:{caller.user}"


def test_a_key_of_one_route_is_free_on_another(ana: Caller) -> None:
    file = ana.upload(ingest="none", headers=KEY).json()
    first = ana.post("/v1/sources", json={"file_id": file["id"]}, headers=KEY)
    assert first.status_code == 202
    again = ana.post("/v1/sources", json={"file_id": file["id"].upper()}, headers=KEY)
    assert again.json() == first.json()
    other = ana.upload(b"other", ingest="none").json()
    assert ana.post("/v1/sources", json={"file_id": other["id"]}, headers=KEY).status_code == 422


def test_a_search_is_answered_anew_and_its_hits_are_not_kept(gateway: Gateway, ana: Caller) -> None:
    assert ana.post("/v1/search", json={"query": "turnips"}, headers=KEY).json()["outcome"] == "nothing"
    gateway.publish(ana.tenant_id, "user:ana", ["Turnips are sown in July."])
    assert ana.post("/v1/search", json={"query": "turnips"}, headers=KEY).json()["outcome"] == "found"
    assert ana.post("/v1/search", json={"query": "swedes"}, headers=KEY).status_code == 422


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "caf\u00e9".encode()])
def test_keys_have_a_form(ana: Caller, key: str | bytes) -> None:
    answer = ana.post("/v1/search", json={"query": "x"}, headers={"Idempotency-Key": key})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_a_failure_leaves_the_key_free(ana: Caller) -> None:
    assert ana.upload(b"once", subject="team", headers=KEY).status_code == 404
    assert ana.upload(b"once", headers=KEY).status_code == 201


def _service(gateway: Gateway) -> IdempotencyService:
    return IdempotencyService(gateway.units)


def test_only_one_of_two_at_once_is_carried_out(gateway: Gateway) -> None:
    service, principal = _service(gateway), Principal(gateway.tenant(), "ana")
    begun, go_on, carried_out = threading.Event(), threading.Event(), []

    def work() -> Answer:
        carried_out.append(1)
        begun.set()
        assert go_on.wait(10)
        return Answer(201, {"n": 1})

    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(service.once, principal, "r", "k", "f", work)
        assert begun.wait(10)
        with pytest.raises(Exception, match="under way"):
            service.once(principal, "r", "k", "f", work)
        go_on.set()
        assert first.result() == Answer(201, {"n": 1})
    assert service.once(principal, "r", "k", "f", work) == Answer(201, {"n": 1})
    assert len(carried_out) == 1


def test_trouble_frees_the_key(gateway: Gateway) -> None:
    service, principal = _service(gateway), Principal(gateway.tenant(), "ana")

    def fail() -> Answer:
        raise TransientError("s3", "away")

    with pytest.raises(TransientError):
        service.once(principal, "r", "k", "f", fail)
    assert service.once(principal, "r", "k", "other", lambda: Answer(200, {})) == Answer(200, {})


def test_a_day_later_the_key_is_free_and_what_was_abandoned_is_soon(gateway: Gateway) -> None:
    principal = Principal(gateway.tenant(), "ana")
    service = IdempotencyService(gateway.units, forget_interval_s=0)

    def age(interval: str) -> None:
        with gateway.units(principal.tenant_id) as uow:
            uow.requests.change(
                f"UPDATE idempotency_keys SET created_at = created_at - interval '{interval}' WHERE tenant_id = :tenant"
            )
            uow.commit()

    def answer(body: str, fingerprint: str = "f") -> Answer:
        return service.once(principal, "r", "k", fingerprint, lambda: Answer(200, {"body": body}))

    assert answer("first") == answer("second") == Answer(200, {"body": "first"})
    age("23 hours 59 minutes")
    assert answer("second") == Answer(200, {"body": "first"})
    age("2 minutes")
    assert answer("third", "other") == Answer(200, {"body": "third"})
    with gateway.units(principal.tenant_id) as uow:
        uow.requests.change("UPDATE idempotency_keys SET status = NULL, response = NULL WHERE tenant_id = :tenant")
        uow.commit()
    with pytest.raises(Exception, match="under way"):
        answer("fourth", "other")
    age("6 minutes")
    assert answer("fifth", "other") == Answer(200, {"body": "fifth"})
