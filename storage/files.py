"""File rows in Postgres."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy.engine import RowMapping

from pipeline.errors import NotFound
from pipeline.ports import NewFile
from pipeline.records import ListPage, StoredFile
from pipeline.types import FileState
from storage.rows import Repository, decode_cursor, encode_cursor

_SELECT = """
SELECT f.file_id, f.filename, f.auth_subject, f.state, f.version, f.low_confidence, f.created_at,
       v.media_type, v.byte_size, v.sha256, v.content_key,
       ARRAY(SELECT sf.source_id FROM source_files sf JOIN sources s USING (tenant_id, source_id)
              WHERE sf.tenant_id = f.tenant_id AND sf.file_id = f.file_id AND s.status <> 'removed'
              ORDER BY s.created_at) AS sources
  FROM files f JOIN file_versions v ON v.tenant_id = f.tenant_id AND v.file_id = f.file_id AND v.version = f.version
 WHERE f.tenant_id = :tenant
"""


def _file(row: RowMapping) -> StoredFile:
    return StoredFile(
        file_id=row["file_id"],
        filename=row["filename"],
        media_type=row["media_type"],
        byte_size=row["byte_size"],
        sha256=row["sha256"] or "",
        version=row["version"],
        auth_subject=row["auth_subject"],
        state=FileState(row["state"]),
        content_key=row["content_key"],
        created_at=row["created_at"],
        low_confidence=row["low_confidence"],
        sources=tuple(row["sources"]),
    )


class PostgresFiles(Repository):
    """Adapter of :class:`pipeline.ports.FileMetadataStore`."""

    def add_pending(self, new: NewFile) -> None:
        self.change(
            "INSERT INTO files (tenant_id, file_id, auth_subject, filename, state, version, ingest, priority)"
            " VALUES (:tenant, :file, :subject, :filename, 'pending', 1, :ingest, :priority)",
            file=new.file_id,
            subject=new.auth_subject,
            filename=new.filename,
            ingest=new.ingest,
            priority=new.priority,
        )
        self.change(
            "INSERT INTO file_versions (tenant_id, file_id, version, content_key, byte_size, declared_type, media_type)"
            " VALUES (:tenant, :file, 1, :key, :size, :type, :type)",
            file=new.file_id,
            key=new.content_key,
            size=new.byte_size,
            type=new.media_type,
        )

    def mark_stored(self, file_id: uuid.UUID, *, sha256: str, byte_size: int, media_type: str) -> bool:
        if not self.move_state(file_id, expected=FileState.PENDING, to=FileState.STORED):
            return False
        self.change(
            "UPDATE file_versions SET sha256 = :sha, byte_size = :size, media_type = :type,"
            " stored_at = clock_timestamp()"
            " WHERE tenant_id = :tenant AND file_id = :file AND version = 1",
            file=file_id,
            sha=sha256,
            size=byte_size,
            type=media_type,
        )
        return True

    def get(self, file_id: uuid.UUID, subjects: Sequence[str]) -> StoredFile:
        row = self.row(
            _SELECT
            + " AND f.file_id = :file AND f.auth_subject = ANY(:subjects) AND f.state IN ('stored', 'quarantined')",
            file=file_id,
            subjects=list(subjects),
        )
        if row is None:
            raise NotFound("no such file")
        return _file(row)

    def page(self, subjects: Sequence[str], limit: int, cursor: str | None) -> ListPage[StoredFile]:
        after = decode_cursor(cursor)
        condition = " AND (f.created_at, f.file_id) < (:at, :last)" if after else ""
        rows = self.rows(
            _SELECT
            + " AND f.auth_subject = ANY(:subjects) AND f.state IN ('stored', 'quarantined')"
            + condition
            + " ORDER BY f.created_at DESC, f.file_id DESC LIMIT :limit",
            subjects=list(subjects),
            limit=limit + 1,
            **({"at": after[0], "last": after[1]} if after else {}),
        )
        items = tuple(_file(row) for row in rows[:limit])
        more = encode_cursor(items[-1].created_at, items[-1].file_id) if len(rows) > limit else None
        return ListPage(items, more)

    def find_same(self, auth_subject: str, sha256: str) -> StoredFile | None:
        row = self.row(
            _SELECT + " AND v.sha256 = :sha AND f.auth_subject = :subject AND f.state = 'stored'"
            " ORDER BY f.created_at, f.file_id LIMIT 1",
            sha=sha256,
            subject=auth_subject,
        )
        return _file(row) if row else None

    def move_state(self, file_id: uuid.UUID, *, expected: FileState, to: FileState) -> bool:
        return (
            self.change(
                "UPDATE files SET state = :to WHERE tenant_id = :tenant AND file_id = :file AND state = :expected",
                file=file_id,
                to=to,
                expected=expected,
            )
            == 1
        )
