"""Errors are problem documents, headers are safe, and only the calls that exist exist."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.gateway.conftest import Caller, Gateway

LATER = [
    ("POST", "/v1/ask"), ("POST", "/v1/uploads"), ("GET", "/v1/stats"), ("GET", "/v1/tools"), ("POST", "/v1/context"),
    ("POST", "/v1/citations"), ("POST", "/v1/artifacts"), ("GET", "/"), ("POST", "/v1/graph/search"), ("GET", "/redoc"),
    ("GET", "/v1/files/x/content"), ("GET", "/v1/files/"), ("GET", "/v1"), ("POST", "/v1/sources/x/retry"),
]  # fmt: skip


BAD_QUESTIONS = [
    b"",
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"[" * 60_000,
    b'{"query": ' + b"9" * 5_000 + b"}",
    b'\xff\xfe{"query": "x"}',
    b'{"query": 7}',
    b'{"query": ""}',
    b'{"query": " "}',
    b'{"query": "\\u0000"}',
    b'{"query": "x", "colour": 1}',
    b'{"query": "x", "limit": 51}',
    b'{"query": "x", "limit": 0}',
    b'{"query": "x", "mode": "graph"}',
    b'{"query": "x", "filters": {"a": 1}}',
    b'{"query": "x", "filters": {"page": 0}}',
    b'{"query": "x", "filters": {"page": 99999999999999}}',
    b'{"query": "x", "filters": {"date_from": "yesterday"}}',
    b'{"query": "x", "filters": {"source_id": ["a"]}}',
    b'{"query": "x", "filters": {"metadata": {"a": NaN}}}',
    b'{"query": "x", "filters": {"metadata": {"a": "\\ud800"}}}',
    b'{"query": "x", "filters": {"metadata": {"\\u0000": 1}}}',
]


@pytest.mark.parametrize(("method", "path"), LATER)
def test_what_no_call_was_asked_for_does_not_exist(gateway: Gateway, ana: Caller, method: str, path: str) -> None:
    for headers in ({}, ana.headers):
        answer = gateway.client.request(method, path, headers=headers)
        assert answer.status_code == 404
        assert answer.json()["code"] == "not_found"


def test_every_error_is_a_problem_document(ana: Caller) -> None:
    answers = {
        404: ana.get("/v1/nothing"),
        405: ana.request("PATCH", "/v1/files"),
        422: ana.get("/v1/files", params={"limit": 0}),
        415: ana.post("/v1/search", content=b"query", headers={"Content-Type": "text/plain"}),
        413: ana.post("/v1/search", json={"query": "x" * 70_000}),
        401: ana.get("/v1/files", headers={"Authorization": "Bearer no"}),
    }
    for status, answer in answers.items():
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/problem+json"
        problem = answer.json()
        assert set(problem) == {"type", "title", "status", "detail", "code"}
        assert problem["status"] == status
    assert answers[405].headers["allow"]


@pytest.mark.parametrize("body", BAD_QUESTIONS)
def test_bad_bodies_are_invalid(ana: Caller, body: bytes) -> None:
    answer = ana.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (400, 422), answer.text
    assert answer.json()["code"] == "invalid"


def test_a_token_is_asked_for_before_the_body_is_looked_at(gateway: Gateway) -> None:
    for body, kind in ((b"{", "application/json"), (b"x", "text/plain"), (b"x" * 100_000, "application/json")):
        answer = gateway.client.post("/v1/search", content=body, headers={"Content-Type": kind})
        assert answer.status_code == 401
    assert gateway.client.post("/v1/files", content=b"x").status_code == 401


def test_what_was_sent_is_not_repeated(ana: Caller) -> None:
    answer = ana.post("/v1/search", json={"query": "x", "limit": "sesame-opens"})
    assert answer.status_code == 422
    assert "sesame" not in answer.text
    assert "limit" in answer.json()["detail"]


def test_answers_are_hardened(gateway: Gateway, ana: Caller) -> None:
    for answer in (
        ana.get("/v1/files"),
        ana.get("/v1/nothing"),
        gateway.client.get("/healthz"),
        ana.get("/v1/files/x"),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_a_bug_is_a_problem_document_and_tells_nothing(
    gateway: Gateway, ana: Caller, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("password=sesame")

    monkeypatch.setattr(gateway.app.state.services.files, "page", broken)
    answer = ana.get("/v1/files", params={"cursor": "tulip"})
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    logged = "".join(capsys.readouterr())
    assert "RuntimeError" in logged
    for secret in ("sesame", "tulip", ana.headers["Authorization"][-20:]):
        assert secret not in logged + answer.text
