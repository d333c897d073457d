"""Chunks, vectors and terms of a generation in Postgres."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pydantic import TypeAdapter
from sqlalchemy.engine import RowMapping

from pipeline.ports import IndexCounts
from pipeline.types import Chunk, ChunkKind, GenerationRef, Location, PageMethod, TermCount, chunk_id
from storage.rows import Repository, of

_LOCATION = TypeAdapter(Location)
_ATTRIBUTES: TypeAdapter[dict[str, object]] = TypeAdapter(dict[str, object])
_NUMBERS = "SELECT source_no, subject_no FROM sources WHERE tenant_id = :tenant AND source_id = :source"
# A bulk insert of this many term rows stays well inside the statement timeout.
_TERM_ROWS = 20_000

_COLUMNS = (
    "ordinal, kind, content, heading_path, location, first_block, last_block, token_count, content_hash, method,"
    " confidence, attributes"
)


def to_chunk(row: RowMapping) -> Chunk:
    return Chunk(
        ordinal=row["ordinal"],
        kind=ChunkKind(row["kind"]),
        content=row["content"],
        heading_path=tuple(row["heading_path"]),
        location=_LOCATION.validate_python(row["location"]),
        first_block=row["first_block"],
        last_block=row["last_block"],
        token_count=row["token_count"],
        content_hash=row["content_hash"],
        method=PageMethod(row["method"]),
        confidence=row["confidence"],
        metadata=row["attributes"],
    )


class PostgresKnowledge(Repository):
    """Adapter of :class:`pipeline.ports.KnowledgeStore`."""

    def replace_chunks(self, ref: GenerationRef, chunks: Sequence[Chunk]) -> None:
        self.change(
            "DELETE FROM chunks WHERE tenant_id = :tenant AND source_id = :source AND generation = :generation",
            **of(ref),
        )
        if not chunks:
            return
        subject = self.one(_NUMBERS, source=ref.source_id)
        self.change_many(
            "INSERT INTO chunks (tenant_id, source_id, generation, ordinal, chunk_id, subject_no, kind, content,"
            " heading_path, pages, location, first_block, last_block, token_count, content_hash, method, confidence,"
            " attributes) VALUES (:tenant, :source, :generation, :ordinal, :chunk_id, :subject_no, :kind, :content,"
            " :heading_path, :pages, CAST(:location AS jsonb), :first_block, :last_block, :token_count, :content_hash,"
            " :method, :confidence, CAST(:attributes AS jsonb))",
            [
                {
                    **of(ref),
                    "ordinal": chunk.ordinal,
                    "chunk_id": chunk_id(ref.source_id, chunk.ordinal),
                    "subject_no": subject["subject_no"],
                    "kind": chunk.kind,
                    "content": chunk.content,
                    "heading_path": list(chunk.heading_path),
                    "pages": list(chunk.location.pages),
                    "location": _LOCATION.dump_json(chunk.location, exclude_defaults=True).decode(),
                    "first_block": chunk.first_block,
                    "last_block": chunk.last_block,
                    "token_count": chunk.token_count,
                    "content_hash": chunk.content_hash,
                    "method": chunk.method,
                    "confidence": chunk.confidence,
                    "attributes": _ATTRIBUTES.dump_json(dict(chunk.metadata)).decode(),
                }
                for chunk in chunks
            ],
        )

    def chunks(self, ref: GenerationRef, first: int = 0, limit: int | None = None) -> tuple[Chunk, ...]:
        rows = self.rows(
            f"SELECT {_COLUMNS} FROM chunks WHERE tenant_id = :tenant AND source_id = :source"
            " AND generation = :generation AND ordinal >= :first ORDER BY ordinal LIMIT :limit",
            **of(ref),
            first=first,
            limit=limit,
        )
        return tuple(to_chunk(row) for row in rows)

    def counts(self, ref: GenerationRef, embedding_set: int) -> IndexCounts:
        row = self.one(
            "SELECT (SELECT count(*) FROM chunks c WHERE c.tenant_id = :tenant AND c.source_id = :source"
            "           AND c.generation = :generation) AS chunks,"
            "       (SELECT count(*) FROM chunk_embeddings e WHERE e.tenant_id = s.tenant_id AND e.set_id = :set"
            "           AND e.source_no = s.source_no AND e.generation = :generation) AS vectors,"
            "       (SELECT count(DISTINCT t.ordinal) FROM chunk_terms t WHERE t.tenant_id = s.tenant_id"
            "           AND t.source_no = s.source_no AND t.generation = :generation) AS keyword_chunks"
            "  FROM sources s WHERE s.tenant_id = :tenant AND s.source_id = :source",
            **of(ref),
            set=embedding_set,
        )
        return IndexCounts(row["chunks"], row["vectors"], row["keyword_chunks"])


class PostgresVectors(Repository):
    """Adapter of :class:`pipeline.ports.VectorIndex`."""

    def missing(self, ref: GenerationRef, embedding_set: int, first: int, last: int) -> tuple[Chunk, ...]:
        rows = self.rows(
            f"SELECT {_COLUMNS} FROM chunks c WHERE c.tenant_id = :tenant AND c.source_id = :source"
            "   AND c.generation = :generation AND c.ordinal BETWEEN :first AND :last AND NOT EXISTS"
            " (SELECT FROM chunk_embeddings e JOIN sources s ON s.tenant_id = e.tenant_id AND s.source_no = e.source_no"
            "   WHERE e.tenant_id = c.tenant_id AND s.source_id = c.source_id AND e.set_id = :set"
            "     AND e.generation = c.generation AND e.ordinal = c.ordinal) ORDER BY c.ordinal",
            **of(ref),
            set=embedding_set,
            first=first,
            last=last,
        )
        return tuple(to_chunk(row) for row in rows)

    def reuse(self, ref: GenerationRef, embedding_set: int) -> int:
        return self.change(
            "INSERT INTO chunk_embeddings (tenant_id, set_id, source_no, generation, ordinal, subject_no, embedding)"
            " SELECT DISTINCT ON (c.ordinal) c.tenant_id, e.set_id, s.source_no, c.generation, c.ordinal, s.subject_no,"
            "        e.embedding"
            "   FROM chunks c JOIN sources s ON s.tenant_id = c.tenant_id AND s.source_id = c.source_id"
            "   JOIN chunks o ON o.tenant_id = c.tenant_id AND o.source_id = c.source_id"
            "        AND o.content_hash = c.content_hash AND o.generation <> c.generation"
            "   JOIN chunk_embeddings e ON e.tenant_id = o.tenant_id AND e.set_id = :set AND e.source_no = s.source_no"
            "        AND e.generation = o.generation AND e.ordinal = o.ordinal"
            "  WHERE c.tenant_id = :tenant AND c.source_id = :source AND c.generation = :generation"
            "  ORDER BY c.ordinal, o.generation DESC ON CONFLICT DO NOTHING",
            **of(ref),
            set=embedding_set,
        )

    def put(self, ref: GenerationRef, embedding_set: int, vectors: Mapping[int, Sequence[float]]) -> None:
        if not vectors:
            return
        for vector in vectors.values():
            norm = math.fsum(value * value for value in vector)
            if not math.isfinite(norm) or norm == 0.0:
                raise ValueError("a vector with a NaN or a zero norm is refused")
        size = self.row("SELECT dimensions FROM embedding_sets WHERE set_id = :set", set=embedding_set)
        if size is None or any(len(vector) != size["dimensions"] for vector in vectors.values()):
            raise ValueError("a vector of another size than its set's is refused")
        self.change(
            "INSERT INTO chunk_embeddings (tenant_id, set_id, source_no, generation, ordinal, subject_no, embedding)"
            " SELECT s.tenant_id, :set, s.source_no, :generation, v.ordinal, s.subject_no, CAST(v.embedding AS halfvec)"
            "   FROM sources s, unnest(CAST(:ordinals AS int[]), CAST(:vectors AS text[])) AS v(ordinal, embedding)"
            "  WHERE s.tenant_id = :tenant AND s.source_id = :source ORDER BY v.ordinal"
            " ON CONFLICT (tenant_id, set_id, source_no, generation, ordinal)"
            " DO UPDATE SET embedding = excluded.embedding",
            **of(ref),
            set=embedding_set,
            ordinals=sorted(vectors),
            vectors=[_literal(vectors[ordinal]) for ordinal in sorted(vectors)],
        )


def _literal(vector: Sequence[float]) -> str:
    return "[" + ",".join(f"{value:.7g}" for value in vector) + "]"


class PostgresKeywords(Repository):
    """Adapter of :class:`pipeline.ports.KeywordIndex`."""

    def put(self, ref: GenerationRef, terms: Mapping[int, Sequence[TermCount]]) -> None:
        numbers = self.one(_NUMBERS, source=ref.source_id)
        self.change(
            "DELETE FROM chunk_terms WHERE tenant_id = :tenant AND source_no = :source_no AND generation = :generation",
            source_no=numbers["source_no"],
            generation=ref.generation,
        )
        rows = sorted(
            (term.term, ordinal, min(term.count, 32_767), length)
            for ordinal, counts in terms.items()
            for length in [sum(one.count for one in counts)]
            for term in counts
        )
        for start in range(0, len(rows), _TERM_ROWS):
            part = rows[start : start + _TERM_ROWS]
            self.change(
                "INSERT INTO chunk_terms (tenant_id, term, subject_no, source_no, generation, ordinal, tf, length)"
                " SELECT :tenant, term, :subject_no, :source_no, :generation, ordinal, tf, length FROM unnest("
                "CAST(:terms AS text[]), CAST(:ordinals AS int[]), CAST(:counts AS smallint[]), CAST(:lengths AS int[])"
                ") AS t(term, ordinal, tf, length)",
                subject_no=numbers["subject_no"],
                source_no=numbers["source_no"],
                generation=ref.generation,
                terms=[row[0] for row in part],
                ordinals=[row[1] for row in part],
                counts=[row[2] for row in part],
                lengths=[row[3] for row in part],
            )
