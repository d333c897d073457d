"""Liveness, readiness, metrics, and the description of the whole."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
import threading
import uuid
from typing import Any
from urllib.parse import quote

from fastapi.testclient import TestClient

from pipeline.entrypoints.gateway.app import create_app
from pipeline.errors import TransientError
from pipeline.services.readiness import ReadinessService
from tests.integration.gateway.conftest import Caller, Gateway

CALLS = {
    ("post", "/v1/files"), ("get", "/v1/files"), ("get", "/v1/files/{id}"), ("delete", "/v1/files/{id}"),
    ("post", "/v1/sources"), ("get", "/v1/sources"), ("get", "/v1/sources/{id}"), ("delete", "/v1/sources/{id}"),
    ("get", "/v1/sources/{id}/events"), ("get", "/v1/sources/{id}/document"), ("get", "/v1/sources/{id}/pages"),
    ("get", "/v1/sources/{id}/chunks"), ("get", "/v1/deletions/{id}"), ("post", "/v1/search"),
    ("get", "/healthz"), ("get", "/readyz"), ("get", "/metrics"),
}  # fmt: skip


def test_alive_and_ready(gateway: Gateway) -> None:
    assert gateway.client.get("/healthz").json() == {"status": "ok"}
    answer = gateway.client.get("/readyz")
    assert answer.json() == {"status": "ok", "dependencies": {"postgres": "ok", "broker": "ok", "s3": "ok"}}


def test_a_dependency_that_is_down_is_named(gateway: Gateway) -> None:
    thaw = threading.Event()

    def down() -> None:
        raise TransientError("s3", "no connection")

    def frozen() -> None:
        thaw.wait()

    readiness = ReadinessService({"postgres": lambda: None, "broker": frozen, "s3": down}, deadline_s=0.3)
    services = dataclasses.replace(gateway.app.state.services, readiness=readiness)
    with TestClient(create_app(services, gateway.settings)) as client:
        for _ in range(3):
            answer = client.get("/readyz")
            assert answer.status_code == 503
            assert answer.json()["dependencies"] == {
                "postgres": "ok",
                "broker": "no answer within 0.3 s",
                "s3": "no connection",
            }
        assert client.get("/healthz").status_code == 200
    thaw.set()


def test_metrics_count_by_route_and_name_nobody(gateway: Gateway, ana: Caller) -> None:
    file = ana.upload(b"counted").json()
    ana.get(f"/v1/files/{file['id']}", params={"secret": "tulip"})
    ana.post("/v1/search", json={"query": "turnips"})
    ana.request("BREW", "/v1/files")
    answer = gateway.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    told = answer.text
    for line in (
        'docmill_http_requests_total{method="GET",route="/v1/files/{id}",status="200"}',
        'docmill_http_requests_total{method="other",route="/v1/files",status="405"}',
        'docmill_files_stored_total{ingest="index",priority="interactive"}',
        'docmill_ingestions_asked_total{origin="upload"}',
        'docmill_searches_total{mode="hybrid",outcome="empty-corpus"}',
        'docmill_http_request_seconds_bucket{le="0.005",method="GET",route="/v1/files/{id}"}',
    ):
        assert line in told, line
    for name in (str(ana.tenant_id), file["id"], "ana", "tulip"):
        assert name not in told


def test_the_description_lists_exactly_the_calls_there_are(gateway: Gateway) -> None:
    described = gateway.client.get("/openapi.json").json()
    found = {(method, path) for path, calls in described["paths"].items() for method in calls}
    assert found == CALLS
    for path, calls in described["paths"].items():
        for call in calls.values():
            assert call["summary"]
            if path.startswith("/v1/"):
                assert call["security"] == [{"HTTPBearer": []}]
                problem = call["responses"]["401"]["content"]
                assert problem == {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    assert _dangling(described) == []


def test_the_page_of_calls_is_complete_and_fetches_nothing(gateway: Gateway) -> None:
    page = gateway.client.get("/docs")
    assert page.status_code == 200
    assert "script-src" not in page.headers["Content-Security-Policy"]
    assert page.headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert "<script" not in page.text
    assert "://" not in page.text
    for path, verbs in gateway.client.get("/openapi.json").json()["paths"].items():
        for verb in verbs:
            assert f"<code>{verb.upper()} {path}</code>" in page.text
    assert "budget_tokens" in page.text


def _dangling(described: dict[str, Any]) -> list[str]:
    def walk(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [each for part in value.values() for each in walk(part)]
        return [each for part in value for each in walk(part)] if isinstance(value, list) else []

    known = {f"#/components/schemas/{name}" for name in described["components"]["schemas"]}
    return [reference for reference in walk(described) if reference not in known]


JUNK = [
    "", " ", "0", "-1", "1e9", "99999999999999999999", "null", "true", "\u0000", "\ud7ff\ue000", "'; DROP", "%00",
    "../../etc/passwd", "{}", "[]", "\u202etxt", "x" * 5_000, str(uuid.UUID(int=0)), "W10", "\u0661\u0662", "NaN",
]  # fmt: skip
JUNK_JSON: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    1e308,
    "",
    "x" * 5_000,
    "\u0000",
    "\ud800",
    [],
    {},
    [[]],
    {"a": {"b": []}},
]


def test_junk_is_refused_and_never_fails(gateway: Gateway, ana: Caller) -> None:
    """Every described call, with junk in every described place: no answer says that the gateway failed."""
    described = gateway.client.get("/openapi.json").json()
    choose = random.Random(7)
    failures = []
    for path, calls in described["paths"].items():
        for method, call in calls.items():
            if path in ("/readyz", "/metrics"):
                continue
            for round_, junk in itertools.product(range(2), JUNK):
                name = path.replace("{id}", (quote(junk, safe="") or "x") if round_ else str(uuid.uuid4()))
                places = call.get("parameters", [])
                query = {one["name"]: choose.choice(JUNK) for one in places if one["in"] == "query"} if places else {}
                body = _junk_body(call, choose)
                answer = ana.request(method.upper(), name, params=query, **body)
                if answer.status_code >= 500:
                    failures.append((method, name, query, body, answer.text))
    assert failures == []


def _junk_body(call: dict[str, Any], choose: random.Random) -> dict[str, Any]:
    content = call.get("requestBody", {}).get("content", {})
    if "application/json" in content:
        names = ("query", "limit", "mode", "filters", "file_id", "junk")
        value = {name: choose.choice(JUNK_JSON) for name in choose.sample(names, 3)}
        if choose.random() < 0.5:
            value = {"query": "turnips", "filters": {name: choose.choice(JUNK_JSON) for name in _FILTERS}}
        return {"content": json.dumps(value).encode(), "headers": {"Content-Type": "application/json"}}
    if "multipart/form-data" in content:
        fields = {name: choose.choice(JUNK) for name in choose.sample(["subject", "ingest", "priority", "x"], 2)}
        return {
            "files": {"file": (choose.choice(JUNK), b"junk", choose.choice([*JUNK[:4], "text/plain"]))},
            "data": fields,
        }
    return {}


_FILTERS = ("source_id", "media_type", "date_from", "date_to", "page", "language", "metadata")
