"""Blocks and page maps in memory."""

from __future__ import annotations

from pipeline.types import Block, ExtractedDocument, GenerationRef, Page


class MemoryDocuments:
    """Adapter of :class:`pipeline.unit_of_work.DocumentStore`."""

    def __init__(self) -> None:
        self._documents: dict[GenerationRef, ExtractedDocument] = {}

    def replace(self, ref: GenerationRef, document: ExtractedDocument) -> None:
        self._documents[ref] = document

    def blocks(self, ref: GenerationRef, first: int = 0, limit: int | None = None) -> tuple[Block, ...]:
        return self._document(ref).blocks[max(first, 0) :][:limit]

    def pages(self, ref: GenerationRef) -> tuple[Page, ...]:
        return tuple(sorted(self._document(ref).pages, key=lambda page: page.page))

    def _document(self, ref: GenerationRef) -> ExtractedDocument:
        return self._documents.get(ref, ExtractedDocument(()))
