"""The runner's rules on the real ledger: what is written, what is given back, what is tried again, and what is not."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.errors import Failure, FailureCode, TransientError
from pipeline.flow import Stage
from pipeline.services.runner import CONTINUE, STOP, Next, Step
from pipeline.testing.engines import SCANNED, MemoryOcr, pretend_pdf
from pipeline.types import GenerationRef, IngestMode
from storage.engine import build_engine
from storage.identity import ensure_embedding_set
from tests.conftest import DatabaseUrls
from tests.integration.workshop import PDF, Workshop
from tests.state import MODEL, State, open_state

NOTE = b"The harbour master counts the ships.\n\nThe quay is nine metres wide."
TABLES = ("blocks", "pages", "chunks", "chunk_terms", "chunk_embeddings")


@pytest.fixture(scope="module")
def shared(database_urls: DatabaseUrls) -> Iterator[State]:
    opened = open_state(database_urls)
    yield opened
    opened.worker.dispose()
    opened.superuser.dispose()


@pytest.fixture
def workshop(shared: State, tmp_path: Path) -> Workshop:
    return Workshop(replace(shared, tenant_id=shared.another_tenant()), tmp_path)


def rows(workshop: Workshop, ref: GenerationRef) -> dict[str, int]:
    return {table: workshop.count(table, ref) for table in TABLES}


def failure(workshop: Workshop, ref: GenerationRef) -> FailureCode | None:
    found = workshop.source(ref).latest.failure
    return None if found is None else found.code


def dies() -> Failure:
    return Failure(FailureCode.CRASHED, "The parser ended without a result.", died=True)


# --- the way of a document ---


def test_a_document_goes_its_way_and_is_found(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    steps = workshop.drive(ref)
    assert [step.next for step in steps] == [Next.CONTINUE] * 7
    assert [step.ended for step in steps] == [False] * 6 + [True]
    source = workshop.source(ref)
    assert (source.status, source.latest.status, source.latest.failure) == ("ready", "published", None)
    assert source.chunks == rows(workshop, ref)["chunks"] == rows(workshop, ref)["chunk_embeddings"] == 1
    assert [hit.content for hit in workshop.hits("quay")] == [NOTE.decode()]
    assert workshop.hits("quay", user="ben") == ()


def test_a_stage_that_succeeded_lets_the_chain_go_on_and_writes_nothing(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.drive(ref, until=Stage.EMBED)
    before = rows(workshop, ref)
    for stage in (Stage.REGISTER, Stage.EXTRACT, Stage.OCR, Stage.CHUNK):
        assert workshop.run(ref, stage) == CONTINUE
    assert workshop.run(ref, Stage.PUBLISH) == STOP
    assert rows(workshop, ref) == before
    assert workshop.parser.read_pages == [(1, 0)]


def test_a_long_document_is_read_and_recognised_in_units_in_any_order(workshop: Workshop) -> None:
    pages = [f"{SCANNED if page % 2 else ''}Chapter{page} has the code XQ-{page:04d}" for page in range(1, 41)]
    ref = workshop.upload(pretend_pdf(*pages), "long.pdf", PDF)
    workshop.run(ref, Stage.REGISTER)
    fanned = workshop.run(ref, Stage.EXTRACT)
    assert fanned.next is Next.STOP
    assert [(bell.unit, bell.unit_pages) for bell in fanned.bells] == [(0, 16), (1, 16), (2, 8)]
    assert workshop.run(ref, Stage.EXTRACT) == STOP
    for unit in (2, 0):
        assert workshop.run(ref, Stage.EXTRACT, unit) == STOP
        assert workshop.run(ref, Stage.EXTRACT, unit) == STOP
    assert workshop.source(ref).progress_done == 24
    assert workshop.blobs() > 0
    (bell,) = workshop.run(ref, Stage.EXTRACT, 1).bells
    assert (bell.stage, bell.unit) == (Stage.OCR, None)
    workshop.drive(ref, start=Stage.OCR)
    source = workshop.source(ref)
    assert (source.status, source.pages) == ("ready", 40)
    assert isinstance(workshop.ocr, MemoryOcr)
    assert sorted(workshop.ocr.asked) == list(range(1, 41, 2))
    best = workshop.hits("XQ-0033")[0]
    assert "XQ-0033" in best.content
    assert 33 in best.location.pages
    assert workshop.blobs() == 0


def test_equal_long_documents_of_two_users_share_their_values_and_lose_none(workshop: Workshop) -> None:
    """Window by window in turn: one lets its values go while the other still needs them."""
    body = pretend_pdf(*(f"Chapter{page} of the book" for page in range(1, 41)))
    refs = [workshop.upload(body, "book.pdf", PDF, user=user) for user in ("ana", "ben")]
    for ref in refs:
        workshop.drive(ref, until=Stage.EXTRACT)
        workshop.run(ref, Stage.EXTRACT)
    for unit in range(3):
        for ref in refs:
            step = workshop.run(ref, Stage.EXTRACT, unit)
            assert len(step.bells) == (unit == 2)
    for ref, user in zip(refs, ("ana", "ben"), strict=True):
        workshop.drive(ref, start=Stage.OCR)
        assert workshop.source(ref, user).status == "ready"
    assert workshop.blobs() == 0


def test_a_failed_unit_ends_the_document_and_leaves_no_value(workshop: Workshop) -> None:
    ref = workshop.upload(pretend_pdf(*(f"page{page}" for page in range(1, 41))), "long.pdf", PDF)
    workshop.drive(ref, until=Stage.EXTRACT)
    workshop.run(ref, Stage.EXTRACT)
    workshop.run(ref, Stage.EXTRACT, 0)
    workshop.parser.happens = [lambda: Failure(FailureCode.MALFORMED, "A page is damaged.")]
    assert workshop.run(ref, Stage.EXTRACT, 1) == Step(Next.STOP, ended=True)
    assert workshop.run(ref, Stage.EXTRACT, 2) == STOP
    assert (failure(workshop, ref), workshop.blobs()) == (FailureCode.MALFORMED, 0)
    assert sum(rows(workshop, ref).values()) == 0


def test_a_readable_source_is_published_without_an_index(workshop: Workshop) -> None:
    source = workshop.ingest(NOTE, ingest=IngestMode.EXTRACT)
    ref = GenerationRef(workshop.state.tenant_id, source.source_id, 1)
    assert (source.status, source.chunks, workshop.embedder.asked) == ("ready", 0, [])
    assert rows(workshop, ref) == {"blocks": 2, "pages": 0, "chunks": 0, "chunk_terms": 0, "chunk_embeddings": 0}


# --- transient trouble ---


def wait_s(workshop: Workshop, ref: GenerationRef, stage: Stage) -> float:
    """How long a stage is put off from now."""
    (seconds,) = workshop.stage(ref, stage, "extract(epoch FROM available_at - clock_timestamp())::float8")
    assert isinstance(seconds, float)
    return seconds


def test_an_embedder_that_is_away_puts_the_document_off_and_loses_nothing(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.embedder.trouble = [TransientError("embedder", "503")] * 2
    workshop.drive(ref)
    waiting = ("status", "waiting_for", "token", "transient_count", "rung_at")
    assert workshop.stage(ref, Stage.EMBED, *waiting) == ("queued", "embedder", None, 1, None)
    first = wait_s(workshop, ref, Stage.EMBED)
    assert 0 < first <= 2
    assert (workshop.source(ref).status, failure(workshop, ref)) == ("ingesting", None)
    # Before its time it is not taken.
    assert workshop.run(ref, Stage.EMBED) == STOP
    workshop.make_due(ref)
    assert workshop.run(ref, Stage.EMBED) == STOP
    assert workshop.stage(ref, Stage.EMBED, "transient_count", "lost_leases", "sandbox_deaths") == (2, 0, 0)
    assert first < wait_s(workshop, ref, Stage.EMBED) <= 4
    workshop.make_due(ref)
    workshop.drive(ref, start=Stage.EMBED)
    assert (workshop.source(ref).status, workshop.source(ref).chunks) == ("ready", 1)
    assert len(workshop.hits("quay")) == 1


def test_a_provider_that_says_when_to_come_back_is_believed(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.embedder.trouble = [TransientError("embedder", "429", retry_after_s=90.0)]
    workshop.drive(ref)
    assert 80 < wait_s(workshop, ref, Stage.EMBED) <= 90


def test_what_was_done_before_the_trouble_is_not_done_again(workshop: Workshop) -> None:
    body = "\n\n".join(f"Paragraph {number} " + "word " * 30 for number in range(150)).encode()
    ref = workshop.upload(body)
    workshop.drive(ref, until=Stage.EMBED)
    bells = workshop.run(ref, Stage.EMBED).bells
    assert len(bells) == 2
    workshop.run(ref, Stage.EMBED, 0)
    embedded = len(workshop.embedder.asked)
    workshop.embedder.trouble = [TransientError("embedder", "reset")]
    assert workshop.run(ref, Stage.EMBED, 1) == STOP
    workshop.make_due(ref)
    (bell,) = workshop.run(ref, Stage.EMBED, 1).bells
    assert bell.stage is Stage.KEYWORDS
    workshop.drive(ref, start=Stage.KEYWORDS)
    source = workshop.source(ref)
    assert source.status == "ready"
    assert embedded == 128
    assert len(workshop.embedder.asked) == source.chunks == rows(workshop, ref)["chunk_embeddings"]


def test_a_store_that_gives_other_bytes_is_waited_for(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    (key,) = workshop.content.keys("")
    good = b"".join(workshop.content.read(key))
    workshop.content.put(key, io.BytesIO(good[:10]), 10, "text/plain")
    assert workshop.run(ref, Stage.REGISTER) == STOP
    assert workshop.stage(ref, Stage.REGISTER, "status", "waiting_for") == ("queued", "s3")
    workshop.content.put(key, io.BytesIO(good), len(good), "text/plain")
    workshop.make_due(ref)
    workshop.drive(ref)
    assert workshop.source(ref).status == "ready"


# --- parsers that die ---


def test_a_parser_that_dies_twice_is_final(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.parser.happens = [dies, dies]
    workshop.drive(ref, until=Stage.EXTRACT)
    first = workshop.run(ref, Stage.EXTRACT)
    assert (first.next, first.ended, [bell.stage for bell in first.bells]) == (Next.STOP, False, [Stage.EXTRACT])
    assert workshop.stage(ref, Stage.EXTRACT, "status", "sandbox_deaths") == ("queued", 1)
    assert failure(workshop, ref) is None
    assert workshop.run(ref, Stage.EXTRACT) == Step(Next.STOP, ended=True)
    assert failure(workshop, ref) is FailureCode.CRASHED
    assert (workshop.source(ref).status, workshop.run(ref, Stage.EXTRACT)) == ("failed", STOP)
    assert workshop.parser.read_pages == [(1, 0)] * 2


def test_a_parser_that_dies_once_costs_one_more_try(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.parser.happens = [dies]
    workshop.drive(ref)
    assert workshop.source(ref).status == "ready"
    assert workshop.stage(ref, Stage.EXTRACT, "attempts", "lost_leases") == (2, 0)


def test_a_parser_that_refuses_is_final_at_once(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.parser.happens = [lambda: Failure(FailureCode.TIMED_OUT, "It took longer than 120 seconds.")]
    assert workshop.drive(ref)[-1] == Step(Next.STOP, ended=True)
    found = workshop.source(ref).latest.failure
    assert found == Failure(FailureCode.TIMED_OUT, "It took longer than 120 seconds.")
    assert workshop.stage(ref, Stage.EXTRACT, "status", "attempts") == ("failed", 1)


# --- work that is no longer ours ---


def taken_over(workshop: Workshop, ref: GenerationRef) -> None:
    workshop.state.expire(ref)
    workshop.state.claimed(ref, Stage.EXTRACT)


def removed(workshop: Workshop, ref: GenerationRef) -> None:
    with workshop.state.units(ref.tenant_id) as uow:
        uow.deletions.remove_source(ref.source_id, ("user:ana",), with_file=False)
        uow.commit()


def superseded(workshop: Workshop, ref: GenerationRef) -> None:
    open_generation(workshop, ref)


def open_generation(workshop: Workshop, ref: GenerationRef) -> GenerationRef:
    """The next generation of a source, admitted."""
    following = GenerationRef(ref.tenant_id, ref.source_id, ref.generation + 1)
    names = {"t": ref.tenant_id, "s": ref.source_id, "g": following.generation}
    workshop.state.sql(
        "INSERT INTO generations (tenant_id, source_id, generation, file_id, file_version, priority, status)"
        " SELECT tenant_id, source_id, :g, file_id, file_version, priority, 'queued' FROM generations"
        "  WHERE tenant_id = :t AND source_id = :s AND generation = 1",
        **names,
    )
    workshop.state.sql(
        "INSERT INTO ingest_stages (tenant_id, source_id, generation, stage, status)"
        " VALUES (:t, :s, :g, 'register', 'queued')",
        **names,
    )
    workshop.state.sql("UPDATE sources SET desired_generation = :g WHERE source_id = :s", g=names["g"], s=names["s"])
    workshop.admit(following)
    return following


@pytest.mark.parametrize("answer", ["text", "failure", "death", "trouble"])
@pytest.mark.parametrize("meanwhile", [taken_over, removed, superseded])
def test_what_is_no_longer_ours_is_not_written(
    workshop: Workshop, meanwhile: Callable[[Workshop, GenerationRef], None], answer: str
) -> None:
    ref = workshop.upload(NOTE)
    workshop.drive(ref, until=Stage.EXTRACT)
    seen: list[tuple[object, ...]] = []

    def look() -> tuple[object, ...]:
        return (
            *workshop.state.sql(
                "SELECT status, token, attempts, transient_count, sandbox_deaths, available_at FROM ingest_stages"
                " WHERE source_id = :s AND generation = 1 AND stage = 'extract'",
                s=ref.source_id,
            ),
            *workshop.state.sql(
                "SELECT status, failure_code, title FROM generations WHERE source_id = :s ORDER BY 1", s=ref.source_id
            ),
            *workshop.state.sql(
                "SELECT status, published_generation FROM sources WHERE source_id = :s", s=ref.source_id
            ),
        )

    def interrupted() -> Failure | None:
        meanwhile(workshop, ref)
        seen.append(look())
        if answer == "trouble":
            raise TransientError("sandbox", "no server")
        if answer == "failure":
            return Failure(FailureCode.MALFORMED, "It is damaged.")
        return dies() if answer == "death" else None

    workshop.parser.happens = [interrupted]
    step = workshop.run(ref, Stage.EXTRACT)
    assert step.next is Next.STOP
    # A bell may ring for what has ended; nobody takes it up.
    assert [workshop.run(bell.ref, bell.stage, bell.unit) for bell in step.bells] == [STOP] * len(step.bells)
    if meanwhile is taken_over:
        assert [look()] == seen
    assert [look()[1:]] == [part[1:] for part in seen]
    assert sum(rows(workshop, ref).values()) == 0
    assert workshop.run(ref, Stage.OCR) == STOP


def test_a_source_that_went_away_frees_its_place(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.drive(ref, until=Stage.EXTRACT)

    def remove() -> None:
        removed(workshop, ref)

    workshop.parser.happens = [remove]
    assert workshop.run(ref, Stage.EXTRACT).ended


def test_an_original_that_is_lost_is_said_to_be(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    lose_objects(workshop)
    assert workshop.run(ref, Stage.REGISTER) == Step(Next.STOP, ended=True)
    assert (workshop.source(ref).status, failure(workshop, ref)) == ("failed", FailureCode.VALIDATION_FAILED)


def test_an_original_that_went_with_its_source_is_no_failure(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.drive(ref, until=Stage.EXTRACT)

    def remove() -> None:
        removed(workshop, ref)
        lose_objects(workshop)

    workshop.parser.happens = [remove]
    assert workshop.run(ref, Stage.EXTRACT).ended
    ended = "SELECT status, failure_code FROM generations WHERE source_id = :s"
    assert workshop.state.sql(ended, s=ref.source_id) == [("cancelled", None)]


def lose_objects(workshop: Workshop) -> None:
    for key in list(workshop.content.keys("")):
        workshop.content.delete(key)


# --- publication ---


@pytest.mark.parametrize(
    "lost",
    [
        "DELETE FROM chunk_embeddings WHERE source_no = :no",
        "DELETE FROM chunk_terms WHERE source_no = :no",
        "DELETE FROM chunks WHERE source_id = :s",
        "UPDATE generations SET chunk_count = chunk_count + 1 WHERE source_id = :s",
    ],
)
def test_wrong_counts_are_not_published(workshop: Workshop, lost: str) -> None:
    ref = workshop.upload(NOTE)
    workshop.drive(ref, until=Stage.PUBLISH)
    ((number,),) = workshop.state.sql("SELECT source_no FROM sources WHERE source_id = :s", s=ref.source_id)
    workshop.state.sql(lost, **({"no": number} if ":no" in lost else {"s": ref.source_id}))
    assert workshop.run(ref, Stage.PUBLISH) == Step(Next.STOP, ended=True)
    source = workshop.source(ref)
    assert (source.status, failure(workshop, ref)) == ("failed", FailureCode.VALIDATION_FAILED)
    assert source.latest.failure is not None
    assert source.latest.failure.retryable
    assert (source.published_at, workshop.hits("quay")) == (None, ())


def test_a_set_promoted_before_publication_is_the_one_that_counts(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.drive(ref, until=Stage.PUBLISH)
    migrator = build_engine(workshop.state.urls.migrator, pool_size=1, application="tests")
    promoted = ensure_embedding_set(migrator, replace(MODEL, version="2"))
    migrator.dispose()
    workshop.state.sql(
        "UPDATE tenants SET active_set = :set WHERE tenant_id = :t", set=promoted, t=workshop.state.tenant_id
    )
    workshop.run(ref, Stage.PUBLISH)
    assert failure(workshop, ref) is FailureCode.VALIDATION_FAILED


def test_a_new_generation_reuses_vectors_and_replaces_the_old_at_once(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE + b"\n\n" + b"word " * 60)
    workshop.drive(ref)
    asked = len(workshop.embedder.asked)
    assert asked == workshop.source(ref).chunks > 1
    second = open_generation(workshop, ref)
    workshop.drive(second, until=Stage.PUBLISH)
    # Until then the old one is read.
    assert {hit.source_version for hit in workshop.hits("quay")} == {1}
    assert workshop.source(ref).status == "ready"
    workshop.drive(second, start=Stage.PUBLISH)
    source = workshop.source(ref)
    assert (source.latest.generation, source.latest.status, source.chunks) == (2, "published", asked)
    assert len(workshop.embedder.asked) == asked
    published = "SELECT generation, status FROM generations WHERE source_id = :s ORDER BY 1"
    assert workshop.state.sql(published, s=ref.source_id) == [(1, "superseded"), (2, "published")]
    assert len(workshop.hits("quay")) == 1


def test_a_failed_generation_leaves_the_published_one_readable(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.drive(ref)
    second = open_generation(workshop, ref)
    workshop.parser.happens = [lambda: Failure(FailureCode.MALFORMED, "It is damaged.")]
    workshop.drive(second)
    source = workshop.source(ref)
    assert (source.status, source.latest.generation, failure(workshop, ref)) == ("ready", 2, FailureCode.MALFORMED)
    assert len(workshop.hits("quay")) == 1
    window = workshop.reading.document(workshop.principal(), ref.source_id, 0, 50)
    assert len(window.blocks) == 2


def test_an_older_generation_that_comes_late_changes_nothing(workshop: Workshop) -> None:
    ref = workshop.upload(NOTE)
    workshop.drive(ref, until=Stage.PUBLISH)
    second = open_generation(workshop, ref)
    assert workshop.run(ref, Stage.PUBLISH) == STOP
    workshop.drive(second)
    assert workshop.source(ref).status == "ready"
    assert workshop.run(ref, Stage.PUBLISH) == STOP
    assert workshop.source(ref).latest.generation == 2
