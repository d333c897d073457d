"""Documents through real workers: every stage, refused documents, messages doubled, lost and unknown."""

from __future__ import annotations

import time
import uuid

import pytest
import redis

from pipeline.errors import FailureCode
from pipeline.flow import Stage
from pipeline.ports import Doorbell
from pipeline.services.search import SearchRequest
from pipeline.types import Found, GenerationRef, IngestMode, Principal, Priority, SearchMode
from storage.task_queue import producer
from tests.deployment import Deployment
from tests.inputs import pdfs

HANDBOOK = b"""# Handbook

## Torque

The spindle bolt is tightened to 42 newton metres.

## Errors

ERR-4021 means the coolant is low. ERR-4022 means the door is open.
"""


@pytest.fixture
def running(deployment: Deployment) -> Deployment:
    deployment.start_worker()
    deployment.start_beat()
    return deployment


def test_a_document_becomes_searchable(running: Deployment) -> None:
    principal = running.principal()
    source_id = running.upload(principal, HANDBOOK, "handbook.md", "text/markdown")
    (source,) = running.wait_ended(principal, [source_id])
    assert source.status == "ready", source.latest
    assert source.chunks == 2
    running.check_guarantees(principal.tenant_id)
    answer = running.services.search.search(principal, SearchRequest("ERR-4022", SearchMode.HYBRID, 3))
    assert isinstance(answer, Found)
    assert answer.hits[0].heading_path == ("Handbook", "Errors")


def test_bad_documents_get_a_closed_reason_and_harm_nobody(running: Deployment) -> None:
    principal = running.principal()
    bad = {
        "lie.pdf": (b"\x89PNG\r\n\x1a\n" + bytes(64), "application/pdf", FailureCode.UNSUPPORTED_TYPE),
        "broken.pdf": (b"%PDF-1.7\n" + b"nothing of a document " * 20, "application/pdf", FailureCode.MALFORMED),
        "nothing.txt": (b" \n\n \t\n", "text/plain", FailureCode.EMPTY),
        "archive.docx": (
            b"PK\x03\x04 not a zip at all",
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            FailureCode.UNSUPPORTED_TYPE,
        ),
    }
    ids = [running.upload(principal, body, name, kind) for name, (body, kind, _) in bad.items()]
    good = running.upload(principal, HANDBOOK, "handbook.md", "text/markdown")
    *refused, accepted = running.wait_ended(principal, [*ids, good])
    reasons = {source.title: source.latest.failure.code for source in refused if source.latest.failure is not None}
    allowed = {name: {code} for name, (_, _, code) in bad.items()}
    allowed["archive.docx"].add(FailureCode.MALFORMED)
    assert {name: reasons.get(name) in codes for name, codes in allowed.items()} == dict.fromkeys(bad, True), reasons
    assert accepted.status == "ready"
    for source in refused:
        assert source.latest.failure is not None
        assert source.latest.failure.remedy
        assert source.status == "failed"


def test_hostile_text_is_stored_clean_and_its_batch_survives(running: Deployment) -> None:
    principal = running.principal()
    body = "before\x00after \u202edesrever\u202c end\n\n".encode() + b"\xed\xa0\x80 lone\n\n" + b"x" * 1_000_000
    hostile = running.upload(principal, body, "hostile.txt", "text/plain")
    plain = running.upload(principal, HANDBOOK, "handbook.md", "text/markdown")
    for source in running.wait_ended(principal, [hostile, plain]):
        assert source.status == "ready", source.latest
    for (content,) in running.sql("SELECT content FROM chunks WHERE source_id = :s", s=hostile):
        assert isinstance(content, str)
        assert not set(content) & {"\x00", "\u202e", "\ud800"}
    running.check_guarantees(principal.tenant_id)


def test_a_readable_source_is_not_searched(running: Deployment) -> None:
    principal = running.principal()
    source_id = running.upload(principal, HANDBOOK, "handbook.md", "text/markdown", ingest=IngestMode.EXTRACT)
    (source,) = running.wait_ended(principal, [source_id])
    assert (source.status, source.indexed, source.chunks) == ("ready", False, 0)
    window = running.services.reading.document(principal, source_id, 0, 50)
    assert any("42 newton metres" in block.text for block in window.blocks)
    answer = running.services.search.search(principal, SearchRequest("spindle bolt", SearchMode.HYBRID, 3))
    assert not isinstance(answer, Found)


def test_a_long_pdf_is_read_in_units_and_its_progress_is_pages(running: Deployment) -> None:
    principal = running.principal()
    pages = [f"Chapter {number}. The code of chapter {number} is XQ-{number:04d}." for number in range(1, 41)]
    source_id = running.upload(
        principal, pdfs.pdf([pdfs.lines(72, 720, [page]) for page in pages]), "long.pdf", "application/pdf"
    )
    (source,) = running.wait_ended(principal, [source_id])
    assert source.status == "ready", source.latest
    assert source.pages == 40
    units = running.sql("SELECT stage, count(*) FROM ingest_units WHERE source_id = :s GROUP BY 1", s=source_id)
    assert units == [("extract", 3)]
    answer = running.services.search.search(principal, SearchRequest("XQ-0033", SearchMode.KEYWORD, 1))
    assert isinstance(answer, Found)
    assert 33 in answer.hits[0].location.pages


def test_every_message_delivered_twice_has_one_winner(deployment: Deployment) -> None:
    for _ in range(2):
        deployment.start_worker(concurrency=2, app="tests.duplicating:app")
    deployment.start_beat()
    principal = deployment.principal()
    ids = [
        deployment.upload(principal, HANDBOOK + f"\n\nDocument {number}.\n".encode(), f"h{number}.md", "text/markdown")
        for number in range(6)
    ]
    sources = deployment.wait_ended(principal, ids)
    assert [source.status for source in sources] == ["ready"] * 6
    deployment.check_guarantees(principal.tenant_id)
    early = deployment.sql(
        "SELECT a.source_id, b.stage FROM ingest_stages a JOIN ingest_stages b USING (tenant_id, source_id, generation)"
        " WHERE a.tenant_id = :t AND b.queued_at > a.queued_at AND b.started_at < a.finished_at",
        t=principal.tenant_id,
    )
    assert early == []
    attempts = deployment.sql("SELECT max(attempts) FROM ingest_stages WHERE tenant_id = :t", t=principal.tenant_id)
    assert attempts == [(1,)]


def test_a_lost_doorbell_is_rung_again(running: Deployment) -> None:
    principal = running.principal()
    ids = [
        running.upload(principal, HANDBOOK + f"{number}".encode(), f"h{number}.md", "text/markdown", Priority.BULK)
        for number in range(8)
    ]
    client = redis.Redis.from_url(running.environment["DOCMILL_BROKER_URL"])
    prefix = running.environment["DOCMILL_BROKER_KEY_PREFIX"]
    for _ in range(10):
        if keys := list(client.scan_iter(prefix + "*")):
            client.delete(*keys)
        time.sleep(0.2)
    client.close()
    sources = running.wait_ended(principal, ids)
    assert [source.status for source in sources] == ["ready"] * 8
    running.check_guarantees(principal.tenant_id)


def test_an_unknown_message_version_and_a_foreign_source_change_nothing(running: Deployment) -> None:
    principal = running.principal()
    source_id = running.upload(principal, HANDBOOK, "handbook.md", "text/markdown")
    running.wait_ended(principal, [source_id])
    app = producer(running.environment["DOCMILL_BROKER_URL"], running.environment["DOCMILL_BROKER_KEY_PREFIX"])
    ids = {"tenant": str(principal.tenant_id), "source": str(source_id), "generation": 1}
    app.send_task("docmill.chunk", kwargs={"version": 99, **ids}, queue="index")
    app.send_task("docmill.chunk", kwargs={"version": 1, **ids, "source": str(uuid.uuid4())}, queue="index")
    app.send_task("docmill.unknown", kwargs={}, queue="index")
    app.close()
    second = running.upload(principal, HANDBOOK + b"more", "more.md", "text/markdown")
    (source,) = running.wait_ended(principal, [second])
    assert source.status == "ready"
    assert running.sql("SELECT count(*) FROM generations WHERE source_id = :s", s=source_id) == [(1,)]


def test_a_deleted_source_leaves_no_row_and_no_object(running: Deployment) -> None:
    principal = running.principal()
    source_id = running.upload(principal, HANDBOOK, "handbook.md", "text/markdown")
    running.wait_ended(principal, [source_id])
    receipt_id = running.services.deletions.delete_source(principal, source_id, with_file=True)
    answer = running.services.search.search(principal, SearchRequest("spindle", SearchMode.HYBRID, 3))
    assert not isinstance(answer, Found)
    running.wait_for(lambda: running.services.deletions.receipt(principal, receipt_id).complete, 40)
    receipt = running.services.deletions.receipt(principal, receipt_id)
    assert receipt.before["chunks"] == 2
    assert receipt.before["vectors"] == 2
    assert set(receipt.after.values()) == {0}
    for table in ("chunks", "blocks", "pages", "chunk_terms", "chunk_embeddings", "generations", "blob_refs"):
        assert running.sql(f"SELECT count(*) FROM {table} WHERE tenant_id = :t", t=principal.tenant_id) == [(0,)], table


def test_a_bell_for_a_finished_stage_heals_the_chain(running: Deployment) -> None:
    """A worker that died between commit and publish left the next stage queued and nobody told."""
    principal = running.principal()
    source_id = running.upload(principal, HANDBOOK, "handbook.md", "text/markdown")
    running.wait_ended(principal, [source_id])
    ref = GenerationRef(principal.tenant_id, source_id, 1)
    running.sql("DELETE FROM ingest_stages WHERE source_id = :s AND stage IN ('keywords', 'publish')", s=source_id)
    running.sql(
        "INSERT INTO ingest_stages (tenant_id, source_id, generation, stage, status, rung_at)"
        " VALUES (:t, :s, 1, 'keywords', 'queued', clock_timestamp() - interval '1 hour')",
        t=principal.tenant_id,
        s=source_id,
    )
    running.sql("UPDATE generations SET status = 'ingesting' WHERE source_id = :s", s=source_id)
    running.sql("UPDATE sources SET published_generation = NULL, status = 'pending' WHERE source_id = :s", s=source_id)
    (source,) = running.wait_ended(principal, [source_id], 30)
    assert source.status == "ready"
    assert Doorbell(ref, Stage.KEYWORDS, Priority.INTERACTIVE).unit is None


def test_principals_see_only_their_own(running: Deployment) -> None:
    ana = running.principal("ana")
    source_id = running.upload(ana, HANDBOOK, "handbook.md", "text/markdown")
    running.wait_ended(ana, [source_id])
    ben = Principal(ana.tenant_id, "ben")
    stranger = running.principal("ana")
    for other in (ben, stranger):
        assert running.services.reading.sources(other, 10, None).items == ()
        answer = running.services.search.search(other, SearchRequest("spindle bolt", SearchMode.HYBRID, 3))
        assert not isinstance(answer, Found)
