"""embed: a vector for every chunk, reusing those of unchanged chunks."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.errors import ConfigurationError, Failure
from pipeline.ledger import UnitPlan, Work
from pipeline.ports import EmbeddingProvider
from pipeline.services.ingest.handler import FanOut, Finish, UnitFinish, Watch, nothing_to_save
from pipeline.types import Chunk
from pipeline.unit_of_work import UnitOfWork, UnitOfWorkFactory

# Chunks of one unit: a few seconds of the local model, well inside a lease.
UNIT_CHUNKS = 128


class Embed:
    def __init__(self, units: UnitOfWorkFactory, embedder: EmbeddingProvider, batch: int) -> None:
        self._units = units
        self._embedder = embedder
        self._batch = batch

    def run(self, work: Work, watch: Watch) -> Finish | FanOut | Failure:
        if not work.indexed:
            return Finish(nothing_to_save)
        with self._units(work.ref.tenant_id) as uow:
            embedding_set = self._set(uow)
            uow.vectors.reuse(work.ref, embedding_set)
            count = uow.sources.facts(work.ref).chunk_count
            uow.commit()
        watch.point("bytes-read")
        if count > UNIT_CHUNKS:
            return FanOut(
                [
                    UnitPlan(number, first, min(first + UNIT_CHUNKS, count) - 1)
                    for number, first in enumerate(range(0, count, UNIT_CHUNKS))
                ]
            )
        vectors = self._embed(work, embedding_set, 0, count - 1, watch)
        return Finish(lambda uow: uow.vectors.put(work.ref, embedding_set, vectors))

    def run_unit(self, work: Work, plan: UnitPlan, watch: Watch) -> UnitFinish | Failure:
        with self._units(work.ref.tenant_id) as uow:
            embedding_set = self._set(uow)
        vectors = self._embed(work, embedding_set, plan.first, plan.last, watch)
        return UnitFinish(lambda uow: uow.vectors.put(work.ref, embedding_set, vectors))

    def gather(self, uow: UnitOfWork, work: Work, outputs: Sequence[str]) -> Failure | None:  # noqa: ARG002 - the port's
        """Every unit stored its own vectors; publication counts them."""
        return None

    def _set(self, uow: UnitOfWork) -> int:
        model = self._embedder.model()
        embedding_set = uow.embedding_set(model)
        if embedding_set is None:
            raise ConfigurationError(f"no embedding set for {model.model} {model.version}; run docmill migrate")
        return embedding_set

    def _embed(self, work: Work, embedding_set: int, first: int, last: int, watch: Watch) -> dict[int, Sequence[float]]:
        with self._units(work.ref.tenant_id) as uow:
            missing = uow.vectors.missing(work.ref, embedding_set, first, last)
        vectors: dict[int, Sequence[float]] = {}
        for start in range(0, len(missing), self._batch):
            watch.step(start, len(missing))
            batch: Sequence[Chunk] = missing[start : start + self._batch]
            for chunk, vector in zip(batch, self._embedder.embed([one.indexed_text for one in batch]), strict=True):
                vectors[chunk.ordinal] = vector
        return vectors
