"""Sources and search over documents that are published."""

from __future__ import annotations

import json
import uuid
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pipeline import bootstrap
from pipeline.entrypoints.gateway.events import Watch
from pipeline.services.deletion import DeletionService
from pipeline.types import Principal, chunk_id
from tests.integration.gateway.conftest import Caller, Gateway

TEXTS = [
    "Turnips are sown in the second half of July and harvested in October.",
    "The pump reports ERR-4021 when its inlet is blocked.",
    "A library lends books to everyone who has a card.",
]
SOURCE_KEYS = {
    "id", "kind", "file_id", "url", "title", "media_type", "subject", "indexed", "status", "latest", "stage",
    "progress", "queue", "failure", "confidence", "low_confidence", "pages", "chunks", "entities", "version",
    "published_at", "created_at",
}  # fmt: skip
HIT_KEYS = {
    "chunk_id", "source_id", "source_version", "file_id", "title", "kind", "content", "heading_path", "location",
    "score", "signals", "extraction", "excerpt",
}  # fmt: skip


def test_a_ready_source(gateway: Gateway, ana: Caller) -> None:
    source_id = gateway.publish(ana.tenant_id, "user:ana", TEXTS)
    source = ana.get(f"/v1/sources/{source_id}").json()
    assert set(source) == SOURCE_KEYS
    assert (source["status"], source["pages"], source["chunks"], source["queue"]) == ("ready", 3, 3, None)
    assert source["latest"] == {"generation": 1, "status": "published", "failure": None}
    assert ana.get("/v1/sources").json()["items"] == [source]


def test_hits_lead_back_to_page_and_box(gateway: Gateway, ana: Caller) -> None:
    source_id = gateway.publish(ana.tenant_id, "user:ana", TEXTS)
    answer = ana.post("/v1/search", json={"query": "When are turnips sown?"}).json()
    assert answer["outcome"] == "found"
    assert set(answer) == {"outcome", "hits", "under_filled", "interpretation", "timings"}
    hit = answer["hits"][0]
    assert set(hit) >= HIT_KEYS
    assert (hit["source_id"], hit["chunk_id"]) == (str(source_id), str(chunk_id(source_id, 0)))
    assert hit["content"] == TEXTS[0]
    assert hit["location"]["pages"] == [1]
    assert set(hit["location"]) == {"pages", "boxes", "slide", "sheet", "cells", "start_s", "end_s"}
    assert hit["location"]["boxes"] == [{"page": 1, "x0": 0.1, "y0": 0.1, "x1": 0.9, "y1": 0.2}]
    assert hit["score"] == 1.0
    assert (hit["signals"]["vector"]["rank"], hit["signals"]["keyword"]["rank"]) == (1, 1)
    assert hit["extraction"] == {"method": "native", "confidence": None, "low_confidence": False}


@pytest.mark.parametrize(
    ("mode", "legs"), [("vector", {"vector"}), ("keyword", {"keyword"}), ("hybrid", {"vector", "keyword"})]
)
def test_modes_choose_legs(gateway: Gateway, ana: Caller, mode: str, legs: set[str]) -> None:
    gateway.publish(ana.tenant_id, "user:ana", TEXTS)
    hit = ana.post("/v1/search", json={"query": "ERR-4021 pump inlet", "mode": mode, "limit": 1}).json()["hits"][0]
    assert hit["content"] == TEXTS[1]
    assert {name for name, signal in hit["signals"].items() if signal is not None} == legs


def test_reasons_for_nothing(gateway: Gateway, ana: Caller) -> None:
    def reason(caller: Caller, **question: Any) -> Any:
        answer = caller.post("/v1/search", json={"query": "turnips", **question}).json()
        assert (answer["outcome"], bool(answer["message"])) == ("nothing", True)
        return answer["reason"]

    assert reason(gateway.caller(ana.tenant_id, subjects=[])) == "no-access"
    assert reason(ana) == "empty-corpus"
    gateway.publish(ana.tenant_id, "user:ana", TEXTS)
    assert reason(ana, query="zeppelin", mode="keyword") == "no-match"
    assert reason(ana, filters={"page": 99}) == "no-match"
    assert reason(ana, filters={"source_id": [str(uuid.uuid4())]}) == "no-match"
    assert reason(ana, query="zeppelin hangar") == "below-floor"
    assert reason(gateway.caller(ana.tenant_id, "ben")) == "empty-corpus"


def test_windows_pages_and_chunks(gateway: Gateway, ana: Caller) -> None:
    source_id = gateway.publish(ana.tenant_id, "user:ana", TEXTS)
    first = ana.get(f"/v1/sources/{source_id}/document", params={"limit": 2}).json()
    assert set(first) == {"blocks", "markdown", "next_block", "low_confidence", "warnings", "reason", "retryable"}
    assert first["markdown"] == f"{TEXTS[0]}\n\n{TEXTS[1]}\n"
    assert (first["next_block"], first["warnings"], first["reason"]) == (2, ["one page was faint"], None)
    rest = ana.get(f"/v1/sources/{source_id}/document", params={"from_block": 2}).json()
    assert [block["text"] for block in rest["blocks"]] == TEXTS[2:]
    assert rest["next_block"] is None
    assert ana.get(f"/v1/sources/{source_id}/document", params={"from_block": 99}).json()["blocks"] == []

    pages = ana.get(f"/v1/sources/{source_id}/pages", params={"limit": 2}).json()
    assert [page["page"] for page in pages["items"]] == [1, 2]
    assert set(pages["items"][0]) >= {"page", "width", "height", "rotation", "method", "confidence", "garble"}
    more = ana.get(f"/v1/sources/{source_id}/pages", params={"cursor": pages["next_cursor"]}).json()
    assert ([page["page"] for page in more["items"]], more["next_cursor"]) == ([3], None)

    chunks = ana.get(f"/v1/sources/{source_id}/chunks", params={"limit": 2}).json()
    assert [chunk["content"] for chunk in chunks["items"]] == TEXTS[:2]
    assert {chunk["citation_count"] for chunk in chunks["items"]} == {0}
    more = ana.get(f"/v1/sources/{source_id}/chunks", params={"cursor": chunks["next_cursor"]}).json()
    assert ([chunk["ordinal"] for chunk in more["items"]], more["next_cursor"]) == ([2], None)


@pytest.mark.parametrize(
    "path",
    [
        "document?from_block=-1",
        "document?limit=51",
        "document?from_block=99999999999",
        "pages?cursor=x",
        "chunks?cursor=-1",
        "chunks?cursor=99999999999",
        "chunks?cursor=%C2%B2",
    ],
)
def test_places_in_a_document_are_checked(gateway: Gateway, ana: Caller, path: str) -> None:
    source_id = gateway.publish(ana.tenant_id, "user:ana", TEXTS[:1])
    answer = ana.get(f"/v1/sources/{source_id}/{path}")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_a_source_that_waits_says_so(ana: Caller) -> None:
    source_id = ana.upload().json()["source_id"]
    window = ana.get(f"/v1/sources/{source_id}/document").json()
    assert (window["blocks"], window["retryable"], bool(window["reason"])) == ([], True, True)
    assert ana.get(f"/v1/sources/{source_id}/pages").json()["items"] == []
    assert ana.get(f"/v1/sources/{source_id}/chunks").json()["items"] == []


def test_deletion_is_proven_by_its_receipt(gateway: Gateway, ana: Caller) -> None:
    source_id = gateway.publish(ana.tenant_id, "user:ana", TEXTS)
    receipt_id = ana.delete(f"/v1/sources/{source_id}", params={"with_file": True}).json()["receipt_id"]
    assert ana.post("/v1/search", json={"query": "turnips"}).json()["reason"] == "empty-corpus"
    DeletionService(gateway.units, bootstrap.content_store(gateway.settings)).carry_out(
        ana.tenant_id, uuid.UUID(receipt_id)
    )
    receipt = ana.get(f"/v1/deletions/{receipt_id}").json()
    assert receipt["complete"] is True
    assert {name: counts["after"] for name, counts in receipt["stores"].items()} == dict.fromkeys(receipt["stores"], 0)
    assert receipt["stores"]["chunks"]["before"] == receipt["stores"]["vectors"]["before"] == 3
    assert receipt["stores"]["objects"]["before"] == 1
    assert ana.get("/v1/files").json()["items"] == []


def test_a_source_goes_and_its_file_stays_unless_asked(gateway: Gateway, ana: Caller) -> None:
    source_id = gateway.publish(ana.tenant_id, "user:ana", TEXTS)
    assert ana.delete(f"/v1/sources/{source_id}").status_code == 202
    assert [file["sources"] for file in ana.get("/v1/files").json()["items"]] == [[]]


def _events(body: str) -> list[tuple[str, Any]]:
    parts = [dict(line.split(": ", 1) for line in part.split("\n")) for part in body.split("\n\n") if part[:1] == "e"]
    return [(part["event"], json.loads(part["data"])) for part in parts]


def test_events_of_an_ended_source(gateway: Gateway, ana: Caller) -> None:
    source_id = gateway.publish(ana.tenant_id, "user:ana", TEXTS)
    answer = ana.get(f"/v1/sources/{source_id}/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = _events(answer.text)
    assert [name for name, _ in events] == ["stage", "progress", "done"]
    assert events[-1][1] == ana.get(f"/v1/sources/{source_id}").json()


def test_events_follow_the_work_to_its_end(gateway: Gateway, ana: Caller) -> None:
    source_id = ana.upload().json()["source_id"]
    seen: list[tuple[str, Any]] = []
    steps = iter(
        [
            "UPDATE generations SET status = 'ingesting' WHERE source_id = :source",
            "UPDATE ingest_stages SET progress_done = 3, progress_total = 8 WHERE source_id = :source",
            "UPDATE generations SET status = 'failed', failure_code = 'encrypted' WHERE source_id = :source",
        ]
    )

    def act(event: str) -> None:
        seen.extend(_events(event))
        with gateway.units(ana.tenant_id) as uow:
            uow.sources.change(next(steps, "SELECT CAST(:source AS uuid)"), source=source_id)
            uow.commit()

    _follow(gateway, ana, source_id, act)
    assert ("progress", {"stage": "register", "done": 3, "total": 8}) in seen
    assert [data["status"] for name, data in seen if name == "stage"] == ["queued", "ingesting", "failed"]
    name, done = seen[-1]
    assert (name, done["failure"]["code"], done["failure"]["retryable"]) == ("done", "encrypted", False)
    assert done["failure"]["remedy"]


def test_events_end_when_the_source_is_removed(gateway: Gateway, ana: Caller) -> None:
    source_id = ana.upload().json()["source_id"]
    seen: list[tuple[str, Any]] = []

    def act(event: str) -> None:
        seen.extend(_events(event))
        ana.delete(f"/v1/sources/{source_id}")

    _follow(gateway, ana, source_id, act)
    assert seen[-1] == ("done", {"code": "not_found", "detail": "No such source."})


def _follow(gateway: Gateway, caller: Caller, source_id: str, act: Any) -> None:
    """Drive the stream itself: the test client gives a response only when it has ended."""

    async def run() -> None:
        reading = gateway.app.state.services.reading
        principal, name = Principal(caller.tenant_id, caller.user), uuid.UUID(source_id)
        watch = Watch(reading, principal, name, anyio.CapacityLimiter(1))
        with anyio.fail_after(20):
            async for piece in watch.stream(reading.source(principal, name)):
                await anyio.to_thread.run_sync(act, piece.decode())

    anyio.run(run)
