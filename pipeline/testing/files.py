"""File rows in memory."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from pipeline.errors import Invalid, NotFound
from pipeline.ports import NewFile
from pipeline.records import ListPage, StoredFile
from pipeline.types import FileState

_SHOWN = frozenset({FileState.STORED, FileState.QUARANTINED})


class MemoryFiles:
    """Adapter of :class:`pipeline.ports.FileMetadataStore` for one tenant with these ``subjects``.

    ``sources`` are the links that registration makes, by file.
    """

    def __init__(self, subjects: Collection[str]) -> None:
        self._subjects = subjects
        self._files: dict[uuid.UUID, StoredFile] = {}
        self.sources: defaultdict[uuid.UUID, list[uuid.UUID]] = defaultdict(list)

    def add_pending(self, new: NewFile) -> None:
        if new.file_id in self._files or new.auth_subject not in self._subjects:
            raise LookupError("a file is new, and its subject is there")
        self._files[new.file_id] = StoredFile(
            file_id=new.file_id,
            filename=new.filename,
            media_type=new.media_type,
            byte_size=new.byte_size,
            sha256="",
            version=1,
            auth_subject=new.auth_subject,
            state=FileState.PENDING,
            content_key=new.content_key,
            created_at=datetime.now(UTC),
        )

    def mark_stored(self, file_id: uuid.UUID, *, sha256: str, byte_size: int, media_type: str) -> bool:
        if not self.move_state(file_id, expected=FileState.PENDING, to=FileState.STORED):
            return False
        found = self._files[file_id]
        self._files[file_id] = replace(found, sha256=sha256, byte_size=byte_size, media_type=media_type)
        return True

    def get(self, file_id: uuid.UUID, subjects: Sequence[str]) -> StoredFile:
        for file in self._shown(subjects):
            if file.file_id == file_id:
                return file
        raise NotFound("no such file")

    def page(self, subjects: Sequence[str], limit: int, cursor: str | None) -> ListPage[StoredFile]:
        before = None if cursor is None else _place(cursor)
        listed = sorted(self._shown(subjects), key=_key, reverse=True)
        rest = [file for file in listed if before is None or _key(file) < before]
        return ListPage(tuple(rest[:limit]), _cursor(rest[limit - 1]) if len(rest) > limit else None)

    def find_same(self, auth_subject: str, sha256: str) -> StoredFile | None:
        same = [file for file in self._shown([auth_subject]) if (file.sha256, file.state) == (sha256, FileState.STORED)]
        return min(same, key=_key, default=None)

    def move_state(self, file_id: uuid.UUID, *, expected: FileState, to: FileState) -> bool:
        found = self._files.get(file_id)
        if found is None or found.state is not expected:
            return False
        self._files[file_id] = replace(found, state=to)
        return True

    def states(self) -> dict[uuid.UUID, FileState]:
        """What nobody is shown: every file's state, pending ones included."""
        return {file_id: file.state for file_id, file in self._files.items()}

    def _shown(self, subjects: Collection[str]) -> list[StoredFile]:
        return [
            replace(file, sources=tuple(self.sources[file.file_id]))
            for file in self._files.values()
            if file.auth_subject in subjects and file.state in _SHOWN
        ]


def _key(file: StoredFile) -> tuple[datetime, uuid.UUID]:
    return file.created_at, file.file_id


def _cursor(last: StoredFile) -> str:
    return f"{last.created_at.isoformat()} {last.file_id}"


def _place(cursor: str) -> tuple[datetime, uuid.UUID]:
    created_at, _, identity = cursor.partition(" ")
    try:
        return datetime.fromisoformat(created_at).astimezone(UTC), uuid.UUID(identity)
    except ValueError as problem:
        raise Invalid("cursor is not one this list gave out") from problem
