"""``/v1/files`` over the real stores."""

from __future__ import annotations

import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from storage.content import S3ContentStore
from tests.integration.gateway.conftest import MAX_BYTES, Caller, Gateway

FILE_KEYS = {
    "id", "filename", "media_type", "byte_size", "sha256", "version", "subject", "state", "low_confidence", "sources",
    "created_at",
}  # fmt: skip


def test_an_upload_becomes_a_file_with_a_waiting_source(ana: Caller) -> None:
    answer = ana.upload(b"turnips", "note.txt")
    assert answer.status_code == 201, answer.text
    file = answer.json()
    assert set(file) == FILE_KEYS | {"source_id", "duplicate_of"}
    assert (file["filename"], file["media_type"], file["byte_size"]) == ("note.txt", "text/plain", 7)
    assert (file["subject"], file["state"], file["version"]) == ("user:ana", "stored", 1)
    assert file["sources"] == [file["source_id"]]
    assert file["duplicate_of"] is None
    source = ana.get(f"/v1/sources/{file['source_id']}").json()
    assert (source["status"], source["file_id"], source["indexed"]) == ("pending", file["id"], True)
    assert source["queue"]["position"] >= 1
    stored = ana.get(f"/v1/files/{file['id']}")
    assert stored.status_code == 200
    assert set(stored.json()) == FILE_KEYS


def test_the_bytes_in_the_store_are_the_ones_sent(ana: Caller, content_store: S3ContentStore) -> None:
    body = bytes(range(256)) * 700
    answer = ana.upload(body, "data.txt", ingest="none")
    assert answer.status_code == 201
    keys = list(content_store.keys(f"{ana.tenant_id}/"))
    assert [b"".join(content_store.read(key)) for key in keys] == [body]
    assert "content_key" not in answer.text
    assert keys[0] not in answer.text


@pytest.mark.parametrize(("ingest", "indexed"), [("index", True), ("extract", False)])
def test_ingest_chooses_the_kind_of_source(ana: Caller, ingest: str, indexed: bool) -> None:
    file = ana.upload(ingest=ingest).json()
    assert ana.get(f"/v1/sources/{file['source_id']}").json()["indexed"] is indexed


def test_ingest_none_starts_no_source_and_it_can_be_added_later(ana: Caller) -> None:
    file = ana.upload(ingest="none").json()
    assert file["source_id"] is None
    assert ana.get("/v1/sources").json() == {"items": [], "next_cursor": None}
    added = ana.post("/v1/sources", json={"file_id": file["id"]})
    assert added.status_code == 202, added.text
    assert added.json()["file_id"] == file["id"]
    again = ana.post("/v1/sources", json={"file_id": file["id"]})
    assert again.json()["id"] == added.json()["id"]


def test_equal_bytes_end_at_one_source(ana: Caller) -> None:
    first, second = ana.upload(b"the same").json(), ana.upload(b"the same", "other.txt").json()
    assert second["duplicate_of"] == first["id"]
    assert second["source_id"] == first["source_id"]


def test_the_same_bytes_in_another_tenant_are_no_duplicate(gateway: Gateway, ana: Caller) -> None:
    body = uuid.uuid4().bytes
    ana.upload(body, "a.txt")
    assert gateway.caller().upload(body, "a.txt").json()["duplicate_of"] is None


def test_a_name_is_made_fit_to_show(ana: Caller) -> None:
    shown = ana.upload(filename="../e\u0301\u202etxt.exe\u0000/b.txt").json()["filename"]
    assert "/" not in shown
    assert "\u202e" not in shown
    assert "\u00e9" in shown


def test_type_by_extension_when_none_is_declared(ana: Caller) -> None:
    assert ana.upload(filename="a.MD", media_type="application/octet-stream").json()["media_type"] == "text/markdown"


@pytest.mark.parametrize(
    ("filename", "media_type"),
    [
        ("a.exe", "application/octet-stream"),
        ("a.svg", "image/svg+xml"),
        ("a.txt", "text/x-unknown"),
        ("noext", "application/octet-stream"),
        ("a.txt", "nonsense"),
        ("a.txt", "text/plain/odd"),
    ],
)
def test_a_type_off_the_list_is_refused(ana: Caller, filename: str, media_type: str) -> None:
    answer = ana.upload(b"x", filename, media_type)
    assert (answer.status_code, answer.json()["code"]) == (415, "unsupported_type")
    assert ana.get("/v1/files").json()["items"] == []


def test_zero_bytes_are_refused(ana: Caller) -> None:
    answer = ana.upload(b"")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_too_large_when_declared_and_when_read(ana: Caller, content_store: S3ContentStore) -> None:
    assert ana.upload(b"x" * MAX_BYTES).status_code == 201
    for size in (MAX_BYTES + 1, MAX_BYTES + 200_000):
        answer = ana.upload(b"x" * size)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert str(MAX_BYTES) in answer.json()["detail"]
    assert len(list(content_store.keys(f"{ana.tenant_id}/"))) == 1


def test_a_subject_not_held_is_not_found(gateway: Gateway, ana: Caller) -> None:
    refused = ana.upload(subject="team")
    assert (refused.status_code, refused.json()["code"]) == (404, "not_found")
    gateway.join(ana.tenant_id, "team", "ana")
    assert ana.upload(subject="team").json()["subject"] == "team"


@pytest.mark.parametrize("fields", [{"ingest": "later"}, {"priority": "urgent"}, {"colour": "red"}])
def test_fields_are_checked(ana: Caller, fields: dict[str, Any]) -> None:
    answer = ana.upload(**fields)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_the_list_is_paged_newest_first(ana: Caller) -> None:
    names = [ana.upload(f"text {number}".encode(), f"{number}.txt").json()["filename"] for number in range(5)]
    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = ana.get("/v1/files", params=query).json()
        assert len(page["items"]) <= 2
        seen += [item["filename"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]
    assert seen == list(reversed(names))


@pytest.mark.parametrize(
    "query", [{"limit": 0}, {"limit": 101}, {"limit": "x"}, {"cursor": "nonsense"}, {"cursor": "W10"}]
)
def test_paging_is_checked(ana: Caller, query: dict[str, Any]) -> None:
    for path in ("/v1/files", "/v1/sources"):
        answer = ana.get(path, params=query)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid")


def test_deletion_hides_at_once(ana: Caller) -> None:
    file = ana.upload().json()
    gone = ana.delete(f"/v1/files/{file['id']}")
    assert gone.status_code == 202
    for path in (f"/v1/files/{file['id']}", f"/v1/sources/{file['source_id']}"):
        assert ana.get(path).status_code == 404
    assert ana.get("/v1/files").json()["items"] == []
    receipt = ana.get(f"/v1/deletions/{gone.json()['receipt_id']}").json()
    assert receipt["complete"] is False
    assert set(receipt["stores"]) == {"chunks", "vectors", "keywords", "blobs", "objects"}
    assert receipt["kept"] == {"citation_snapshots": 0}
    assert ana.delete(f"/v1/files/{file['id']}").status_code == 404


def test_more_requests_at_once_than_connections(ana: Caller) -> None:
    """A request never waits for a second connection while it holds the first."""
    file = ana.upload().json()
    paths = [f"/v1/files/{file['id']}", f"/v1/sources/{file['source_id']}", "/v1/files", "/v1/sources"] * 10
    with ThreadPoolExecutor(24) as threads:
        answers = list(threads.map(ana.get, paths))
    assert {answer.status_code for answer in answers} == {200}


def test_equal_bytes_at_once_end_at_one_source(ana: Caller) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: ana.upload(b"raced", f"{number}.txt"), range(8)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["source_id"] for answer in answers}) == 1
    assert len(ana.get("/v1/files").json()["items"]) == 8
    assert len(ana.get("/v1/sources").json()["items"]) == 1


def test_a_store_that_stalls_holds_up_uploads_only(
    gateway: Gateway, ana: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(gateway.app.state.services.files._content, "put", lambda *_: go_on.wait(20))
    with ThreadPoolExecutor(60) as threads:
        stalled = [threads.submit(ana.upload, f"text {number}".encode()) for number in range(50)]
        try:
            time.sleep(0.5)
            began = time.monotonic()
            assert ana.get("/v1/files").status_code == 200
            assert ana.post("/v1/search", json={"query": "turnips", "mode": "keyword"}).status_code == 200
            assert time.monotonic() - began < 5
        finally:
            go_on.set()
        assert {upload.result().status_code for upload in stalled} == {201}
