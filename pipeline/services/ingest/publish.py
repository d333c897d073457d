"""publish: check the counts, then one guarded row update makes the generation visible."""

from __future__ import annotations

from pipeline.errors import Failure, FailureCode, SourceGone
from pipeline.ledger import Work
from pipeline.services.ingest.handler import Finish, Undivided, Watch
from pipeline.unit_of_work import PublishedFacts, UnitOfWork


class Publish(Undivided):
    def run(self, work: Work, watch: Watch) -> Finish:
        watch.point("bytes-read")
        return Finish(lambda uow: _publish(uow, work))


def _publish(uow: UnitOfWork, work: Work) -> Failure | None:
    facts = uow.sources.facts(work.ref)
    if work.indexed:
        counted = uow.knowledge.counts(work.ref, uow.active_set())
        wanted = (facts.chunk_count, facts.chunk_count, facts.keyword_chunks)
        found = (counted.chunks, counted.vectors, counted.keyword_chunks)
        if wanted != found:
            return Failure(
                FailureCode.VALIDATION_FAILED,
                f"Expected {wanted[0]} chunks, {wanted[1]} vectors and {wanted[2]} keyword rows;"
                f" found {found[0]}, {found[1]} and {found[2]}.",
            )
    published = uow.sources.publish(
        work.ref,
        PublishedFacts(
            chunk_count=facts.chunk_count,
            term_total=facts.term_total,
            page_count=facts.page_count,
            confidence=facts.confidence,
            low_confidence=facts.low_confidence,
        ),
    )
    if not published:
        raise SourceGone("a newer generation was published first")
    return None
