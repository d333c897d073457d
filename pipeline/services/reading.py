"""Reading what was ingested: sources, document windows, page maps and chunks."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from pipeline.errors import Invalid
from pipeline.ports import AuthorizationPolicy
from pipeline.records import ListPage, Source
from pipeline.stages.window import WINDOW_BLOCKS, window
from pipeline.types import Block, Chunk, GenerationRef, Page, Principal
from pipeline.unit_of_work import UnitOfWork, UnitOfWorkFactory


@dataclass(frozen=True, slots=True)
class DocumentWindow:
    """A run of blocks that never cuts one; ``reason`` says why there is nothing to read."""

    blocks: tuple[Block, ...]
    next_block: int | None
    low_confidence: bool
    warnings: tuple[str, ...]
    reason: str | None
    retryable: bool


class ReadingService:
    def __init__(self, units: UnitOfWorkFactory, policy: AuthorizationPolicy) -> None:
        self._units = units
        self._policy = policy

    def source(self, principal: Principal, source_id: uuid.UUID) -> Source:
        """Raises NotFound."""
        # Before the unit of work: a request that waits for a second connection while it holds one can wait for ever.
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            return uow.sources.get(source_id, subjects)

    def sources(self, principal: Principal, limit: int, cursor: str | None) -> ListPage[Source]:
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            return uow.sources.page(subjects, limit, cursor)

    def document(self, principal: Principal, source_id: uuid.UUID, from_block: int, limit: int) -> DocumentWindow:
        """At most ``limit`` blocks from ``from_block``, or why there are none. Raises NotFound and Invalid."""
        if from_block < 0:
            raise Invalid("from_block counts from 0")
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            ref = uow.sources.readable(source_id, subjects)
            if ref is None:
                return _unreadable(uow.sources.get(source_id, subjects))
            facts = uow.sources.facts(ref)
            blocks = uow.documents.blocks(ref, from_block, min(limit, WINDOW_BLOCKS) + 1)
        part = window(blocks, 0, limit)
        return DocumentWindow(
            blocks=blocks[: part.last + 1],
            next_block=None if part.next is None else from_block + part.next,
            low_confidence=facts.low_confidence,
            warnings=facts.warnings,
            reason=None,
            retryable=False,
        )

    def pages(self, principal: Principal, source_id: uuid.UUID) -> tuple[Page, ...]:
        """The page map of the published generation; of the newest attempt when none is. Raises NotFound."""
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            return uow.documents.pages(_reference(uow, principal.tenant_id, source_id, subjects))

    def chunks(
        self, principal: Principal, source_id: uuid.UUID, first: int, limit: int
    ) -> tuple[tuple[Chunk, ...], int | None]:
        """Published chunks from ordinal ``first`` and the next ordinal. Raises NotFound."""
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            ref = uow.sources.readable(source_id, subjects)
            chunks = () if ref is None else uow.knowledge.chunks(ref, first, limit + 1)
        return chunks[:limit], first + limit if len(chunks) > limit else None


def _reference(uow: UnitOfWork, tenant_id: uuid.UUID, source_id: uuid.UUID, subjects: tuple[str, ...]) -> GenerationRef:
    """The generation readers see, else the newest attempt."""
    readable = uow.sources.readable(source_id, subjects)
    if readable is not None:
        return readable
    return GenerationRef(tenant_id, source_id, uow.sources.get(source_id, subjects).latest.generation)


def _unreadable(source: Source) -> DocumentWindow:
    failure = source.latest.failure
    if failure is None:
        return DocumentWindow((), None, False, (), "still being processed", retryable=True)
    return DocumentWindow((), None, False, (), failure.code, retryable=failure.retryable)
