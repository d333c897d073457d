"""keywords: the terms of every chunk."""

from __future__ import annotations

from pipeline.ledger import Work
from pipeline.services.ingest.handler import Finish, Undivided, Watch, nothing_to_save
from pipeline.stages.keywords import terms_of
from pipeline.unit_of_work import UnitOfWork, UnitOfWorkFactory


class Keywords(Undivided):
    def __init__(self, units: UnitOfWorkFactory) -> None:
        self._units = units

    def run(self, work: Work, watch: Watch) -> Finish:
        if not work.indexed:
            return Finish(nothing_to_save)
        with self._units(work.ref.tenant_id) as uow:
            chunks = uow.knowledge.chunks(work.ref)
        watch.point("bytes-read")
        terms = {chunk.ordinal: terms_of(chunk.indexed_text) for chunk in chunks}

        def save(uow: UnitOfWork) -> None:
            uow.keywords.put(work.ref, terms)
            uow.sources.measure_terms(
                work.ref,
                keyword_chunks=sum(1 for counts in terms.values() if counts),
                term_total=sum(one.count for counts in terms.values() for one in counts),
            )

        return Finish(save)
