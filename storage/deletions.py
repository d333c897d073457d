"""Tombstones and receipts in Postgres: hidden at once, rows and objects afterwards, counts before and after."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence

from pipeline.errors import NotFound
from pipeline.types import GenerationRef
from pipeline.unit_of_work import DeletionWork, Receipt
from storage.blobs import PostgresBlobs
from storage.rows import Repository, of

# Counted per store for a receipt's sources. Terms and vectors are keyed by the source's number.
_COUNTS = """
SELECT (SELECT count(*) FROM chunks WHERE tenant_id = :tenant AND source_id = ANY(:sources)) AS chunks,
       (SELECT count(*) FROM chunk_embeddings e JOIN sources s USING (tenant_id, source_no)
         WHERE e.tenant_id = :tenant AND s.source_id = ANY(:sources)) AS vectors,
       (SELECT count(*) FROM chunk_terms t JOIN sources s USING (tenant_id, source_no)
         WHERE t.tenant_id = :tenant AND s.source_id = ANY(:sources)) AS keywords,
       (SELECT count(*) FROM blob_refs WHERE tenant_id = :tenant AND owner = ANY(:owners)) AS blobs,
       (SELECT count(*) FROM files WHERE tenant_id = :tenant AND file_id = ANY(:files)
           AND state <> 'deleted') AS objects
"""


class PostgresDeletions(Repository):
    """Adapter of :class:`pipeline.unit_of_work.DeletionStore`."""

    def remove_source(self, source_id: uuid.UUID, subjects: Sequence[str], *, with_file: bool) -> uuid.UUID:
        hidden = self._hide([source_id], subjects)
        if not hidden:
            raise NotFound("no such source")
        files: list[uuid.UUID] = []
        if with_file:
            files = [
                row["file_id"]
                for row in self.rows(
                    "UPDATE files f SET state = 'deleting' FROM source_files sf WHERE sf.tenant_id = :tenant"
                    " AND sf.source_id = :source AND f.tenant_id = sf.tenant_id AND f.file_id = sf.file_id"
                    " AND f.state IN ('stored', 'quarantined') AND NOT EXISTS (SELECT FROM source_files o"
                    "   JOIN sources s ON s.tenant_id = o.tenant_id AND s.source_id = o.source_id"
                    "   WHERE o.tenant_id = f.tenant_id AND o.file_id = f.file_id AND o.source_id <> :source"
                    "     AND s.status <> 'removed') RETURNING f.file_id",
                    source=source_id,
                )
            ]
        return self._receipt_for([source_id], files, hidden)

    def remove_file(self, file_id: uuid.UUID, subjects: Sequence[str]) -> uuid.UUID:
        row = self.row(
            "UPDATE files SET state = 'deleting' WHERE tenant_id = :tenant AND file_id = :file"
            " AND auth_subject = ANY(:subjects) AND state IN ('stored', 'quarantined') RETURNING auth_subject",
            file=file_id,
            subjects=list(subjects),
        )
        if row is None:
            raise NotFound("no such file")
        alone = [
            each["source_id"]
            for each in self.rows(
                "SELECT sf.source_id FROM source_files sf JOIN sources s USING (tenant_id, source_id)"
                " WHERE sf.tenant_id = :tenant AND sf.file_id = :file AND s.status <> 'removed' AND NOT EXISTS"
                " (SELECT FROM source_files o JOIN files f ON f.tenant_id = o.tenant_id AND f.file_id = o.file_id"
                "   WHERE o.tenant_id = sf.tenant_id AND o.source_id = sf.source_id AND o.file_id <> sf.file_id"
                "     AND f.state IN ('pending', 'stored', 'quarantined')) ORDER BY sf.source_id",
                file=file_id,
            )
        ]
        self._hide(alone, subjects)
        return self._receipt_for(alone, [file_id], [row["auth_subject"]])

    def _hide(self, sources: Sequence[uuid.UUID], subjects: Sequence[str]) -> list[str]:
        hidden = self.rows(
            "UPDATE sources SET status = 'removed', removed_at = clock_timestamp() WHERE tenant_id = :tenant"
            " AND source_id = ANY(:sources) AND auth_subject = ANY(:subjects) AND status <> 'removed'"
            " RETURNING auth_subject",
            sources=list(sources),
            subjects=list(subjects),
        )
        self.change(
            "UPDATE generations SET status = 'cancelled', finished_at = clock_timestamp() WHERE tenant_id = :tenant"
            " AND source_id = ANY(:sources) AND status IN ('queued', 'ingesting')",
            sources=list(sources),
        )
        return [row["auth_subject"] for row in hidden]

    def _receipt_for(
        self, sources: Sequence[uuid.UUID], files: Sequence[uuid.UUID], subjects: Sequence[str]
    ) -> uuid.UUID:
        receipt = uuid.uuid4()
        self.change(
            "INSERT INTO deletion_receipts (tenant_id, receipt_id, source_ids, file_ids, auth_subjects)"
            " VALUES (:tenant, :receipt, :sources, :files, :subjects)",
            receipt=receipt,
            sources=list(sources),
            files=list(files),
            subjects=sorted(set(subjects)),
        )
        return receipt

    def open_receipt(self, receipt_id: uuid.UUID) -> DeletionWork | None:
        row = self.row(
            "SELECT file_ids FROM deletion_receipts WHERE tenant_id = :tenant AND receipt_id = :receipt"
            " AND completed_at IS NULL",
            receipt=receipt_id,
        )
        if row is None:
            return None
        keys = self.rows(
            "SELECT content_key FROM file_versions WHERE tenant_id = :tenant AND file_id = ANY(:files) ORDER BY 1",
            files=row["file_ids"],
        )
        return DeletionWork(tuple(each["content_key"] for each in keys))

    def purge(self, receipt_id: uuid.UUID) -> None:
        row = self.one(
            "SELECT source_ids, file_ids, before FROM deletion_receipts WHERE tenant_id = :tenant"
            " AND receipt_id = :receipt FOR UPDATE",
            receipt=receipt_id,
        )
        sources = row["source_ids"]
        # Waits for every finishing transaction that holds one of these sources in share mode.
        self.rows(
            "SELECT source_id FROM sources WHERE tenant_id = :tenant AND source_id = ANY(:sources)"
            " ORDER BY source_id FOR UPDATE",
            sources=sources,
        )
        owners = [
            f"generation:{each['source_id']}:{each['generation']}"
            for each in self.rows(
                "SELECT source_id, generation FROM generations WHERE tenant_id = :tenant AND source_id = ANY(:sources)",
                sources=sources,
            )
        ]
        before = self.one(_COUNTS, sources=sources, owners=owners, files=row["file_ids"])
        self._purge_rows(sources, owners)
        after = self.one(_COUNTS, sources=sources, owners=owners, files=row["file_ids"])
        self.change(
            "UPDATE deletion_receipts SET before = coalesce(before, CAST(:before AS jsonb)),"
            " after = CAST(:after AS jsonb) WHERE tenant_id = :tenant AND receipt_id = :receipt",
            receipt=receipt_id,
            before=json.dumps(dict(before)),
            after=json.dumps(dict(after)),
        )

    def _purge_rows(self, sources: Sequence[uuid.UUID], owners: Sequence[str]) -> None:
        for table in ("chunk_terms", "chunk_embeddings"):
            self.change(
                f"DELETE FROM {table} t USING sources s WHERE s.tenant_id = :tenant AND s.source_id = ANY(:sources)"
                " AND t.tenant_id = s.tenant_id AND t.source_no = s.source_no",
                sources=list(sources),
            )
        blobs = PostgresBlobs(self._connection, self._tenant)
        for owner in owners:
            blobs.release(owner)
        # Blocks, pages, chunks, stages and units go with their generations.
        self.change(
            "DELETE FROM generations WHERE tenant_id = :tenant AND source_id = ANY(:sources)", sources=list(sources)
        )
        self.change(
            "DELETE FROM source_files WHERE tenant_id = :tenant AND source_id = ANY(:sources)", sources=list(sources)
        )

    def drop_generation(self, ref: GenerationRef) -> None:
        for table in ("chunk_terms", "chunk_embeddings"):
            self.change(
                f"DELETE FROM {table} t USING sources s WHERE s.tenant_id = :tenant AND s.source_id = :source"
                " AND t.tenant_id = s.tenant_id AND t.source_no = s.source_no AND t.generation = :generation",
                **of(ref),
            )
        self.change(
            "DELETE FROM generations WHERE tenant_id = :tenant AND source_id = :source AND generation = :generation"
            " AND status = 'superseded'",
            **of(ref),
        )

    def close(self, receipt_id: uuid.UUID) -> None:
        self.change(
            "UPDATE files f SET state = 'deleted' FROM deletion_receipts r WHERE r.tenant_id = :tenant"
            " AND r.receipt_id = :receipt AND f.tenant_id = r.tenant_id AND f.file_id = ANY(r.file_ids)"
            " AND f.state = 'deleting'",
            receipt=receipt_id,
        )
        self.change(
            "DELETE FROM source_files sf USING deletion_receipts r WHERE r.tenant_id = :tenant"
            " AND r.receipt_id = :receipt AND sf.tenant_id = r.tenant_id AND sf.file_id = ANY(r.file_ids)",
            receipt=receipt_id,
        )
        self.change(
            "UPDATE deletion_receipts SET completed_at = clock_timestamp(),"
            " after = after || jsonb_build_object('objects',"
            " (SELECT count(*) FROM files f WHERE f.tenant_id = deletion_receipts.tenant_id"
            "   AND f.file_id = ANY(deletion_receipts.file_ids) AND f.state <> 'deleted'))"
            " WHERE tenant_id = :tenant AND receipt_id = :receipt AND completed_at IS NULL",
            receipt=receipt_id,
        )

    def receipt(self, receipt_id: uuid.UUID, subjects: Sequence[str]) -> Receipt:
        row = self.row(
            "SELECT receipt_id, completed_at, before, after FROM deletion_receipts WHERE tenant_id = :tenant"
            " AND receipt_id = :receipt AND auth_subjects && CAST(:subjects AS text[])",
            receipt=receipt_id,
            subjects=list(subjects),
        )
        if row is None:
            raise NotFound("no such deletion")
        return Receipt(row["receipt_id"], row["completed_at"] is not None, row["before"] or {}, row["after"] or {})
