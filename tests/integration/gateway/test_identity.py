"""Who may call, and that what one may not see cannot be told from what is not there."""

from __future__ import annotations

import base64
import json
import time
import uuid
from typing import Any

import jwt
import pytest
from fastapi.testclient import TestClient

from pipeline.entrypoints.gateway.app import create_app
from pipeline.errors import ConfigurationError
from tests.integration.gateway.conftest import Caller, Gateway, settings_of

SECRET = "another-secret-of-forty-random-characters"


def _status(gateway: Gateway, authorization: str | None) -> tuple[int, str, str | None]:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = gateway.client.get("/v1/files", headers=headers)
    return answer.status_code, answer.json().get("code", ""), answer.headers.get("www-authenticate")


@pytest.mark.parametrize(
    "authorization", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer x.y.z", "Bearer " + "a" * 9_000]
)
def test_without_a_token_nothing_is_answered(gateway: Gateway, authorization: str | None) -> None:
    assert _status(gateway, authorization) == (401, "unauthenticated", "Bearer")


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": int(time.time()) - 1},
        {"exp": None},
        {"exp": "soon"},
        {"exp": float("inf")},
        {"sub": None},
        {"sub": ""},
        {"sub": "a\u0000b"},
        {"sub": "x" * 300},
        {"sub": 7},
        {"tenant": None},
        {"tenant": "acme"},
        {"tenant": 7},
        {"subjects": "team"},
        {"subjects": [1]},
        {"scope": 3},
        {"nbf": int(time.time()) + 500},
    ],
)
def test_a_signed_token_of_another_form_is_refused(gateway: Gateway, claims: dict[str, Any]) -> None:
    token = gateway.token(gateway.tenant(), **claims)
    assert _status(gateway, f"Bearer {token}") == (401, "unauthenticated", "Bearer")


def test_other_signatures_are_refused(gateway: Gateway) -> None:
    tenant = gateway.tenant()
    good = gateway.token(tenant)
    payload = {"tenant": str(tenant), "sub": "ana", "exp": int(time.time()) + 60}
    unsigned = jwt.encode(payload, None, algorithm="none")  # type: ignore[arg-type]
    other_hash = jwt.encode(payload, gateway.settings.jwt_secret.get_secret_value() * 2, algorithm="HS512")  # type: ignore[union-attr]
    header, body, signature = good.split(".")
    forged = base64.urlsafe_b64encode(json.dumps({**payload, "sub": "eve"}).encode()).decode().rstrip("=")
    for token in (
        unsigned,
        other_hash,
        gateway.token(tenant, secret=SECRET),
        f"{header}.{forged}.{signature}",
        f"{header}.{body}.",
    ):
        assert _status(gateway, f"Bearer {token}")[0] == 401
    assert _status(gateway, f"bearer {good}")[0] == 200


def test_a_tenant_that_is_not_there_is_refused(gateway: Gateway) -> None:
    assert _status(gateway, f"Bearer {gateway.token(uuid.uuid4())}")[0] == 401


def test_both_secrets_are_taken_during_a_rotation(gateway: Gateway, gateway_environment: dict[str, str]) -> None:
    old = gateway_environment["DOCMILL_JWT_SECRET"]
    settings = settings_of(gateway_environment, jwt_secret=SECRET, jwt_secret_previous=old)
    with TestClient(create_app(gateway.app.state.services, settings)) as client:
        tenant = gateway.tenant()
        for secret, status in ((SECRET, 200), (old, 200), ("x" * 40, 401)):
            token = gateway.token(tenant, secret=secret)
            assert client.get("/v1/files", headers={"Authorization": f"Bearer {token}"}).status_code == status


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"jwt_secret": None}, "DOCMILL_JWT_SECRET"),
        ({"jwt_secret": "short"}, "DOCMILL_JWT_SECRET"),
        ({"jwt_secret_previous": "short"}, "DOCMILL_JWT_SECRET_PREVIOUS"),
    ],
)
def test_a_secret_that_protects_nothing_stops_the_start(
    gateway: Gateway, gateway_environment: dict[str, str], changed: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigurationError, match=named):
        create_app(gateway.app.state.services, settings_of(gateway_environment, **changed))


def test_a_token_is_narrowed_never_widened(gateway: Gateway) -> None:
    tenant = gateway.tenant()
    gateway.join(tenant, "team", "ana")
    everything = gateway.caller(tenant)
    private, shared = everything.upload(b"mine").json(), everything.upload(b"ours", subject="team").json()
    narrowed = gateway.caller(tenant, subjects=["team", "board"])
    assert [file["id"] for file in narrowed.get("/v1/files").json()["items"]] == [shared["id"]]
    assert narrowed.get(f"/v1/files/{private['id']}").status_code == 404
    assert narrowed.upload(b"new").status_code == 404
    assert narrowed.upload(b"new", subject="board").status_code == 404
    assert gateway.caller(tenant, subjects=[]).get("/v1/files").json()["items"] == []
    assert len(everything.get("/v1/files").json()["items"]) == 2


def test_not_entitled_equals_not_found(gateway: Gateway) -> None:
    """Another user of the tenant and another tenant get, byte for byte, what an id gets that names nothing."""
    tenant = gateway.tenant()
    ana, ben, eve = gateway.caller(tenant), gateway.caller(tenant, "ben"), gateway.caller()
    file = ana.upload(b"secret turnips").json()
    doomed = ana.upload(b"to be deleted").json()
    receipt = ana.delete(f"/v1/files/{doomed['id']}").json()["receipt_id"]
    ids = {"files": file["id"], "sources": file["source_id"], "deletions": receipt}
    calls = [
        ("GET", "files", ""), ("DELETE", "files", ""), ("GET", "sources", ""), ("DELETE", "sources", ""),
        ("GET", "sources", "/events"), ("GET", "sources", "/document"), ("GET", "sources", "/pages"),
        ("GET", "sources", "/chunks"), ("GET", "deletions", ""),
    ]  # fmt: skip
    for method, kind, rest in calls:
        unknown = ana.request(method, f"/v1/{kind}/{uuid.uuid4()}{rest}")
        malformed = ana.request(method, f"/v1/{kind}/not-a-uuid{rest}")
        assert unknown.status_code == 404
        assert malformed.content == unknown.content
        for stranger in (ben, eve):
            answer = stranger.request(method, f"/v1/{kind}/{ids[kind]}{rest}")
            assert (answer.status_code, answer.content) == (404, unknown.content), (method, kind, rest)
    adding = [who.post("/v1/sources", json={"file_id": file["id"]}) for who in (ben, eve)]
    nothing = ana.post("/v1/sources", json={"file_id": str(uuid.uuid4())})
    assert {(answer.status_code, answer.content) for answer in adding} == {(404, nothing.content)}
    for stranger in (ben, eve):
        for path in ("/v1/files", "/v1/sources"):
            assert stranger.get(path).json()["items"] == []
    assert ana.get(f"/v1/files/{file['id']}").status_code == 200


def test_a_revocation_counts_at_once(gateway: Gateway) -> None:
    tenant = gateway.tenant()
    gateway.join(tenant, "team", "ana")
    ana: Caller = gateway.caller(tenant)
    file = ana.upload(b"ours", subject="team", headers={"Idempotency-Key": "one"}).json()
    with gateway.units(tenant) as uow:
        uow.subjects.change("DELETE FROM memberships WHERE tenant_id = :tenant AND member = 'ana'")
        uow.commit()
    assert ana.get(f"/v1/files/{file['id']}").status_code == 404
    assert ana.upload(b"ours", subject="team", headers={"Idempotency-Key": "one"}).status_code == 404
