"""The index and its search in memory: exact, slow, and of one mind with Postgres about every answer.

One :class:`MemoryShelf` holds what the adapters share. A row remembers the subject its source had when the row was
written, as the copies in Postgres do.
"""

from __future__ import annotations

import math
import struct
import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Generic, TypeVar

from pipeline.ports import ActiveSet, IndexCounts
from pipeline.types import Chunk, EmbeddingModel, GenerationRef, Json, TermCount

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Owned(Generic[T]):
    """A row and the subject it was written under."""

    subject: str
    value: T


@dataclass(slots=True)
class MemorySource:
    """What a search reads of a source; ``auth_subject`` is the authority on who may see it."""

    auth_subject: str
    title: str = "Untitled"
    media_type: str = "text/plain"
    indexed: bool = True
    removed: bool = False
    published_generation: int | None = None
    published_version: int = 1
    chunk_count: int = 0
    term_total: int = 0
    file_id: uuid.UUID | None = None
    language: str | None = None
    document_date: datetime | None = None
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    attributes: dict[str, Json] = field(default_factory=dict)


class MemoryShelf:
    """The shared state of a deployment: its embedding sets, tenants' active sets, sources and rows."""

    def __init__(self, sets: Mapping[int, EmbeddingModel]) -> None:
        self.sets = dict(sets)
        self.active_sets: dict[uuid.UUID, int] = {}
        self.sources: dict[tuple[uuid.UUID, uuid.UUID], MemorySource] = {}
        self.chunks: dict[GenerationRef, dict[int, Owned[Chunk]]] = {}
        self.vectors: dict[tuple[GenerationRef, int], dict[int, Owned[tuple[float, ...]]]] = {}
        self.terms: dict[GenerationRef, dict[int, Owned[tuple[TermCount, ...]]]] = {}

    def active_set(self, tenant_id: uuid.UUID) -> ActiveSet:
        set_id = self.active_sets[tenant_id]
        return ActiveSet(set_id, self.sets[set_id])

    def subject_of(self, ref: GenerationRef) -> str:
        return self.sources[ref.tenant_id, ref.source_id].auth_subject

    def move_copies(self, ref: GenerationRef, kinds: Set[str]) -> None:
        """Bring the subject on a generation's ``chunks``, ``terms`` or ``vectors`` up to the authority's."""
        subject = self.subject_of(ref)
        if "chunks" in kinds:
            self.chunks[ref] = _owned_by(subject, self.chunks.get(ref, {}))
        if "terms" in kinds:
            self.terms[ref] = _owned_by(subject, self.terms.get(ref, {}))
        if "vectors" in kinds:
            self.vectors.update({key: _owned_by(subject, rows) for key, rows in self.vectors.items() if key[0] == ref})


def _owned_by(subject: str, rows: Mapping[int, Owned[T]]) -> dict[int, Owned[T]]:
    return {ordinal: Owned(subject, row.value) for ordinal, row in rows.items()}


class MemoryKnowledge:
    """Adapter of :class:`pipeline.ports.KnowledgeStore`."""

    def __init__(self, shelf: MemoryShelf) -> None:
        self._shelf = shelf

    def replace_chunks(self, ref: GenerationRef, chunks: Sequence[Chunk]) -> None:
        subject = self._shelf.subject_of(ref)
        self._shelf.chunks[ref] = {chunk.ordinal: Owned(subject, chunk) for chunk in chunks}

    def chunks(self, ref: GenerationRef, first: int = 0, limit: int | None = None) -> tuple[Chunk, ...]:
        rows = self._shelf.chunks.get(ref, {})
        return tuple(rows[ordinal].value for ordinal in sorted(rows) if ordinal >= first)[:limit]

    def counts(self, ref: GenerationRef, embedding_set: int) -> IndexCounts:
        terms = self._shelf.terms.get(ref, {})
        return IndexCounts(
            chunks=len(self._shelf.chunks.get(ref, {})),
            vectors=len(self._shelf.vectors.get((ref, embedding_set), {})),
            keyword_chunks=sum(1 for row in terms.values() if row.value),
        )


class MemoryVectors:
    """Adapter of :class:`pipeline.ports.VectorIndex`."""

    def __init__(self, shelf: MemoryShelf) -> None:
        self._shelf = shelf

    def missing(self, ref: GenerationRef, embedding_set: int, first: int, last: int) -> tuple[Chunk, ...]:
        present = self._shelf.vectors.get((ref, embedding_set), {})
        rows = self._shelf.chunks.get(ref, {})
        return tuple(rows[at].value for at in sorted(rows) if first <= at <= last and at not in present)

    def reuse(self, ref: GenerationRef, embedding_set: int) -> int:
        known = self._known(ref, embedding_set)
        into = self._shelf.vectors.setdefault((ref, embedding_set), {})
        copied = {
            at: known[row.value.content_hash]
            for at, row in self._shelf.chunks.get(ref, {}).items()
            if at not in into and row.value.content_hash in known
        }
        subject = self._shelf.subject_of(ref)
        into.update({at: Owned(subject, vector) for at, vector in copied.items()})
        return len(copied)

    def _known(self, ref: GenerationRef, embedding_set: int) -> dict[str, tuple[float, ...]]:
        """Vectors by chunk hash in the other generations of the source; the newest generation's counts."""
        known: dict[str, tuple[float, ...]] = {}
        others = [key for key in self._shelf.vectors if key[1] == embedding_set and key[0].source_id == ref.source_id]
        for other, _ in sorted(others, key=lambda key: key[0].generation):
            if other == ref or other.tenant_id != ref.tenant_id:
                continue
            chunks = self._shelf.chunks.get(other, {})
            for at, row in self._shelf.vectors[other, embedding_set].items():
                if at in chunks:
                    known[chunks[at].value.content_hash] = row.value
        return known

    def put(self, ref: GenerationRef, embedding_set: int, vectors: Mapping[int, Sequence[float]]) -> None:
        dimensions = self._shelf.sets[embedding_set].dimensions if embedding_set in self._shelf.sets else None
        for vector in vectors.values():
            check_vector(vector)
            if len(vector) != dimensions:
                raise ValueError("a vector of another size than its set's is refused")
        subject = self._shelf.subject_of(ref)
        into = self._shelf.vectors.setdefault((ref, embedding_set), {})
        into.update({at: Owned(subject, as_halves(vector)) for at, vector in vectors.items()})


class MemoryKeywords:
    """Adapter of :class:`pipeline.ports.KeywordIndex`."""

    def __init__(self, shelf: MemoryShelf) -> None:
        self._shelf = shelf

    def put(self, ref: GenerationRef, terms: Mapping[int, Sequence[TermCount]]) -> None:
        subject = self._shelf.subject_of(ref)
        self._shelf.terms[ref] = {at: Owned(subject, tuple(counts)) for at, counts in terms.items() if counts}


def check_vector(vector: Sequence[float] | None) -> Sequence[float]:
    """The vector. Raises ValueError for none, for a NaN and for a zero norm."""
    norm = math.fsum(value * value for value in vector or ())
    if vector is None or not math.isfinite(norm) or norm == 0.0:
        raise ValueError("a vector with a NaN or a zero norm is refused")
    return vector


def as_halves(vector: Sequence[float]) -> tuple[float, ...]:
    """The vector in half precision, which is what the index keeps of it."""
    return struct.unpack(f"{len(vector)}e", struct.pack(f"{len(vector)}e", *vector))
