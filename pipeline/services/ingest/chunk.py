"""chunk: blocks to chunks."""

from __future__ import annotations

from pipeline.errors import Failure, FailureCode
from pipeline.ledger import Work
from pipeline.ports import ChunkingStrategy
from pipeline.services.ingest.handler import Finish, Undivided, Watch
from pipeline.unit_of_work import UnitOfWork, UnitOfWorkFactory


class ChunkBlocks(Undivided):
    def __init__(self, units: UnitOfWorkFactory, strategy: ChunkingStrategy) -> None:
        self._units = units
        self._strategy = strategy

    def run(self, work: Work, watch: Watch) -> Finish | Failure:
        with self._units(work.ref.tenant_id) as uow:
            blocks = uow.documents.blocks(work.ref)
        watch.point("bytes-read")
        chunks = self._strategy.split(blocks)
        if not chunks:
            return Failure(FailureCode.EMPTY, "Nothing in the document can be indexed.")
        kept = chunks if work.indexed else ()

        def save(uow: UnitOfWork) -> None:
            uow.knowledge.replace_chunks(work.ref, kept)
            uow.sources.measure_chunks(work.ref, chunks=len(kept), chunker=self._strategy.version)

        return Finish(save)
