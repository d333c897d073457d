"""Sources and generations in Postgres."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy.engine import RowMapping
from sqlalchemy.exc import IntegrityError

from pipeline import flow
from pipeline.errors import Failure, FailureCode, NotFound, SourceGone
from pipeline.ledger import Work
from pipeline.records import Attempt, ListPage, QueuePosition, Source
from pipeline.types import GenerationRef, GenerationStatus, Priority, SourceKind, SourceStatus
from pipeline.unit_of_work import GenerationFacts, NewSource, PublishedFacts, RegisteredSource
from storage.rows import Repository, decode_cursor, encode_cursor, of

_KEY = "tenant_id = :tenant AND source_id = :source"
_GENERATION = _KEY + " AND generation = :generation"

# A source is listed with its newest attempt and the stage that attempt stands at.
_SELECT = """
SELECT s.source_id, s.kind, s.url, s.title, s.media_type, s.auth_subject, s.indexed, s.status, s.page_count,
       s.chunk_count, s.confidence, s.low_confidence, s.published_generation, s.published_version, s.published_at,
       s.created_at, s.desired_generation,
       g.status AS generation_status, g.failure_code, g.failure_detail, g.file_version, g.page_count AS pages_found,
       (SELECT sf.file_id FROM source_files sf JOIN files f USING (tenant_id, file_id)
         WHERE sf.tenant_id = s.tenant_id AND sf.source_id = s.source_id AND f.state IN ('stored', 'quarantined')
         ORDER BY sf.created_at LIMIT 1) AS file_id,
       st.stage, st.progress_done, st.progress_total,
       CASE WHEN g.status = 'queued' THEN
            (SELECT count(*) FROM generations w WHERE w.tenant_id = s.tenant_id AND w.status = 'queued'
                AND (w.priority = 'bulk', w.created_at, w.source_id)
                    < (g.priority = 'bulk', g.created_at, g.source_id)) + 1 END AS position
  FROM sources s
  JOIN generations g ON g.tenant_id = s.tenant_id AND g.source_id = s.source_id AND g.generation = s.desired_generation
  LEFT JOIN LATERAL (SELECT i.stage, i.progress_done, i.progress_total FROM ingest_stages i
         WHERE i.tenant_id = s.tenant_id AND i.source_id = s.source_id AND i.generation = g.generation
         ORDER BY i.queued_at DESC, i.started_at DESC NULLS LAST LIMIT 1) st ON true
 WHERE s.tenant_id = :tenant AND s.status <> 'removed'
"""


def _failure(row: RowMapping) -> Failure | None:
    if row["failure_code"] is None:
        return None
    return Failure(FailureCode(row["failure_code"]), row["failure_detail"] or "")


def _source(row: RowMapping) -> Source:
    status = SourceStatus.READY if row["published_generation"] is not None else SourceStatus(row["status"])
    return Source(
        source_id=row["source_id"],
        kind=SourceKind(row["kind"]),
        file_id=row["file_id"],
        url=row["url"],
        title=row["title"],
        media_type=row["media_type"],
        auth_subject=row["auth_subject"],
        indexed=row["indexed"],
        status=status,
        latest=Attempt(row["desired_generation"], GenerationStatus(row["generation_status"]), _failure(row)),
        stage=row["stage"],
        progress_done=row["progress_done"] or 0,
        progress_total=row["progress_total"] or 0,
        queue=QueuePosition(row["position"], None) if row["position"] is not None else None,
        confidence=row["confidence"],
        low_confidence=row["low_confidence"],
        pages=row["page_count"] or row["pages_found"],
        chunks=row["chunk_count"],
        version=row["published_version"] or row["file_version"],
        published_at=row["published_at"],
        created_at=row["created_at"],
    )


class PostgresSources(Repository):
    """Adapter of :class:`pipeline.unit_of_work.SourceStore`."""

    def register(self, new: NewSource) -> RegisteredSource:
        live = self._live(new)
        if live is None:
            try:
                with self._connection.begin_nested():
                    return RegisteredSource(self._create(new), created=True)
            except IntegrityError:
                # Another upload of equal bytes won the race; its source is the one to link to.
                live = self._live(new)
        if live is None:
            raise SourceGone("the source of equal bytes ended meanwhile")
        self._link(live, new.file.file_id)
        # Publication flags the files that are linked by then; one that comes later is as hard to read.
        self.change(
            "UPDATE files f SET low_confidence = s.low_confidence FROM sources s WHERE f.tenant_id = :tenant"
            " AND f.file_id = :file AND s.tenant_id = :tenant AND s.source_id = :source",
            file=new.file.file_id,
            source=live,
        )
        return RegisteredSource(live, created=False)

    def _live(self, new: NewSource) -> uuid.UUID | None:
        row = self.row(
            "SELECT source_id FROM sources WHERE tenant_id = :tenant AND auth_subject = :subject"
            " AND content_hash = :hash AND indexed = :indexed AND kind = 'file'"
            " AND status IN ('pending', 'ingesting', 'ready') FOR SHARE",
            subject=new.file.auth_subject,
            hash=new.file.sha256,
            indexed=new.indexed,
        )
        return row["source_id"] if row else None

    def _create(self, new: NewSource) -> uuid.UUID:
        source = uuid.uuid4()
        self.change(
            "INSERT INTO sources (tenant_id, source_id, kind, title, media_type, auth_subject, subject_no, indexed,"
            " content_hash, status, desired_generation)"
            " SELECT :tenant, :source, 'file', :title, :type, s.subject, s.subject_no, :indexed, :hash, 'pending', 1"
            "   FROM subjects s WHERE s.tenant_id = :tenant AND s.subject = :subject",
            source=source,
            title=new.title,
            type=new.file.media_type,
            subject=new.file.auth_subject,
            indexed=new.indexed,
            hash=new.file.sha256,
        )
        self._link(source, new.file.file_id)
        self.change(
            "INSERT INTO generations (tenant_id, source_id, generation, file_id, file_version, priority, status)"
            " VALUES (:tenant, :source, 1, :file, :version, :priority, 'queued')",
            source=source,
            file=new.file.file_id,
            version=new.file.version,
            priority=new.priority,
        )
        self.change(
            "INSERT INTO ingest_stages (tenant_id, source_id, generation, stage, status)"
            " VALUES (:tenant, :source, 1, :stage, 'queued')",
            source=source,
            stage=flow.FIRST_STAGE,
        )
        return source

    def _link(self, source: uuid.UUID, file_id: uuid.UUID) -> None:
        self.change(
            "INSERT INTO source_files (tenant_id, source_id, file_id) VALUES (:tenant, :source, :file)"
            " ON CONFLICT DO NOTHING",
            source=source,
            file=file_id,
        )

    def get(self, source_id: uuid.UUID, subjects: Sequence[str]) -> Source:
        row = self.row(
            _SELECT + " AND s.source_id = :source AND s.auth_subject = ANY(:subjects)",
            source=source_id,
            subjects=list(subjects),
        )
        if row is None:
            raise NotFound("no such source")
        return _source(row)

    def page(self, subjects: Sequence[str], limit: int, cursor: str | None) -> ListPage[Source]:
        after = decode_cursor(cursor)
        condition = " AND (s.created_at, s.source_id) < (:at, :last)" if after else ""
        values: dict[str, Any] = {"at": after[0], "last": after[1]} if after else {}
        rows = self.rows(
            _SELECT
            + " AND s.auth_subject = ANY(:subjects)"
            + condition
            + " ORDER BY s.created_at DESC, s.source_id DESC LIMIT :limit",
            subjects=list(subjects),
            limit=limit + 1,
            **values,
        )
        items = tuple(_source(row) for row in rows[:limit])
        more = encode_cursor(items[-1].created_at, items[-1].source_id) if len(rows) > limit else None
        return ListPage(items, more)

    def readable(self, source_id: uuid.UUID, subjects: Sequence[str]) -> GenerationRef | None:
        row = self.row(
            f"SELECT published_generation FROM sources WHERE {_KEY} AND status <> 'removed'"
            " AND auth_subject = ANY(:subjects)",
            source=source_id,
            subjects=list(subjects),
        )
        if row is None:
            raise NotFound("no such source")
        if row["published_generation"] is None:
            return None
        return GenerationRef(self._tenant, source_id, row["published_generation"])

    def hold(self, ref: GenerationRef) -> None:
        row = self.row(
            "SELECT s.status, s.desired_generation, g.status AS generation_status FROM sources s"
            " JOIN generations g USING (tenant_id, source_id)"
            " WHERE s.tenant_id = :tenant AND s.source_id = :source AND g.generation = :generation FOR SHARE OF s",
            **of(ref),
        )
        if row is None or row["status"] == "removed" or row["generation_status"] != "ingesting":
            raise SourceGone("the source was removed or its generation ended")
        if row["desired_generation"] != ref.generation:
            raise SourceGone("a newer generation was opened")

    def work(self, ref: GenerationRef) -> Work:
        row = self.row(
            "SELECT g.priority, g.file_version, s.indexed, s.title, f.filename, v.declared_type, v.media_type,"
            "       v.content_key, v.sha256, v.byte_size"
            "  FROM generations g JOIN sources s USING (tenant_id, source_id)"
            "  JOIN source_files sf ON sf.tenant_id = g.tenant_id AND sf.source_id = g.source_id"
            "  JOIN files f ON f.tenant_id = sf.tenant_id AND f.file_id = sf.file_id AND f.state = 'stored'"
            "  JOIN file_versions v ON v.tenant_id = f.tenant_id AND v.file_id = f.file_id"
            "       AND v.sha256 = s.content_hash"
            " WHERE g.tenant_id = :tenant AND g.source_id = :source AND g.generation = :generation"
            " ORDER BY (f.file_id = g.file_id) DESC, sf.created_at LIMIT 1",
            **of(ref),
        )
        if row is None:
            raise SourceGone("no stored file is linked to the source")
        return Work(
            ref=ref,
            priority=Priority(row["priority"]),
            indexed=row["indexed"],
            title=row["title"],
            filename=row["filename"],
            declared_type=row["declared_type"],
            media_type=row["media_type"],
            content_key=row["content_key"],
            sha256=row["sha256"],
            byte_size=row["byte_size"],
            file_version=row["file_version"],
        )

    def set_media_type(self, ref: GenerationRef, media_type: str) -> None:
        self.change(f"UPDATE sources SET media_type = :type WHERE {_KEY}", source=ref.source_id, type=media_type)

    def describe(
        self, ref: GenerationRef, *, title: str | None, warnings: Sequence[str], pages: int, blocks: int
    ) -> None:
        self.change(
            "UPDATE generations SET title = :title, warnings = :warnings, page_count = :pages, block_count = :blocks"
            f" WHERE {_GENERATION}",
            **of(ref),
            title=title,
            warnings=list(warnings),
            pages=pages,
            blocks=blocks,
        )

    def rate(
        self,
        ref: GenerationRef,
        *,
        confidence: float | None,
        low_confidence: bool,
        warnings: Sequence[str],
        blocks: int,
    ) -> None:
        self.change(
            "UPDATE generations SET confidence = :confidence, low_confidence = :low, block_count = :blocks,"
            f" warnings = warnings || CAST(:warnings AS text[]) WHERE {_GENERATION}",
            **of(ref),
            confidence=confidence,
            low=low_confidence,
            blocks=blocks,
            warnings=list(warnings),
        )

    def measure_chunks(self, ref: GenerationRef, *, chunks: int, chunker: str) -> None:
        self.change(
            f"UPDATE generations SET chunk_count = :chunks, chunker_version = :chunker WHERE {_GENERATION}",
            **of(ref),
            chunks=chunks,
            chunker=chunker,
        )

    def measure_terms(self, ref: GenerationRef, *, keyword_chunks: int, term_total: int) -> None:
        self.change(
            f"UPDATE generations SET keyword_chunks = :chunks, term_total = :total WHERE {_GENERATION}",
            **of(ref),
            chunks=keyword_chunks,
            total=term_total,
        )

    def facts(self, ref: GenerationRef) -> GenerationFacts:
        row = self.one(
            "SELECT chunk_count, keyword_chunks, term_total, page_count, block_count, confidence, low_confidence,"
            f" warnings, title FROM generations WHERE {_GENERATION}",
            **of(ref),
        )
        return GenerationFacts(**{**row, "warnings": tuple(row["warnings"])})

    def publish(self, ref: GenerationRef, facts: PublishedFacts) -> bool:
        # Publications are ordered: an older generation that finishes later changes nothing.
        published = self.change(
            "UPDATE sources s SET published_generation = :generation, published_version = g.file_version,"
            " published_at = clock_timestamp(), status = 'ready', chunk_count = :chunks, term_total = :terms,"
            " page_count = :pages, confidence = :confidence, low_confidence = :low,"
            " title = CASE WHEN s.published_generation IS NULL THEN coalesce(nullif(g.title, ''), s.title)"
            "         ELSE s.title END"
            "  FROM generations g WHERE s.tenant_id = :tenant AND s.source_id = :source AND g.tenant_id = s.tenant_id"
            "   AND g.source_id = s.source_id AND g.generation = :generation AND s.desired_generation = :generation"
            "   AND s.status <> 'removed' AND coalesce(s.published_generation, 0) < :generation",
            **of(ref),
            chunks=facts.chunk_count,
            terms=facts.term_total,
            pages=facts.page_count,
            confidence=facts.confidence,
            low=facts.low_confidence,
        )
        if published != 1:
            return False
        self.change(
            "UPDATE generations SET finished_at = clock_timestamp(), status = CASE WHEN generation = :generation"
            f" THEN 'published' ELSE 'superseded' END WHERE {_KEY} AND (generation = :generation"
            " OR generation < :generation AND status = 'published')",
            **of(ref),
        )
        self.change(
            "UPDATE files f SET low_confidence = :low FROM source_files sf WHERE sf.tenant_id = :tenant"
            " AND sf.source_id = :source AND f.tenant_id = sf.tenant_id AND f.file_id = sf.file_id",
            source=ref.source_id,
            low=facts.low_confidence,
        )
        return True

    def fail(self, ref: GenerationRef, failure: Failure) -> None:
        self.change(
            "UPDATE generations SET status = 'failed', failure_code = :code, failure_detail = :detail,"
            f" finished_at = clock_timestamp() WHERE {_GENERATION} AND status = 'ingesting'",
            **of(ref),
            code=failure.code,
            detail=failure.detail,
        )
        self.change(
            f"UPDATE sources SET status = 'failed' WHERE {_KEY} AND published_generation IS NULL"
            " AND desired_generation = :generation AND status <> 'removed'",
            **of(ref),
        )
