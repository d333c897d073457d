"""Uploads: a pending row, the bytes, then one transaction that stores the file and registers its source."""

from __future__ import annotations

import unicodedata
import uuid
from dataclasses import dataclass
from typing import BinaryIO

from pipeline.errors import Conflict, NotFound, TooLarge, UnsupportedType
from pipeline.ports import AuthorizationPolicy, FileContentStore, NewFile, TaskQueue
from pipeline.records import ListPage, StoredFile
from pipeline.types import FileState, IngestMode, Principal, Priority
from pipeline.unit_of_work import NewSource, UnitOfWorkFactory

NAME_BYTES = 200
# Controls, format characters (bidi overrides among them), surrogates, private use and line ends never stand in a name.
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_SEPARATORS = frozenset("/\\")
# A name that begins or ends with these would look like another, or like none.
_PADDING = "." + "".join(chr(code) for code in range(0x3001) if unicodedata.category(chr(code)) == "Zs")


def display_name(name: str) -> str:
    """A file name fit to show: NFC, without controls, bidi overrides and separators, at most 200 bytes."""
    kept = "".join(
        "_" if letter in _SEPARATORS else letter
        for letter in name
        if unicodedata.category(letter) not in _REFUSED_CATEGORIES
    )
    # Last, for what was taken out may have stood between a letter and its accent.
    kept = unicodedata.normalize("NFC", kept).strip(_PADDING)
    if len(kept.encode()) > NAME_BYTES:
        stem, dot, ending = kept.rpartition(".")
        ending = dot + ending if stem and len(ending) <= 16 else ""
        kept = kept.encode()[: NAME_BYTES - len(ending.encode())].decode(errors="ignore").rstrip(_PADDING) + ending
    return kept or "unnamed"


@dataclass(frozen=True, slots=True)
class UploadRequest:
    """What a caller says of an upload before its bytes are taken; ``subject`` None is private."""

    filename: str
    media_type: str
    subject: str | None = None
    ingest: IngestMode = IngestMode.INDEX
    priority: Priority = Priority.INTERACTIVE


@dataclass(frozen=True, slots=True)
class UploadContent:
    """Received bytes, rewound, with their size and sha256 hex digest."""

    stream: BinaryIO
    byte_size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Uploaded:
    """A stored file, the source it has now, and the older file of equal bytes."""

    file: StoredFile
    source_id: uuid.UUID | None
    duplicate_of: uuid.UUID | None


class FileService:
    def __init__(
        self,
        units: UnitOfWorkFactory,
        policy: AuthorizationPolicy,
        content: FileContentStore,
        queue: TaskQueue,
        accepted_types: frozenset[str],
        max_bytes: int,
    ) -> None:
        self._units = units
        self._policy = policy
        self._content = content
        self._queue = queue
        self._accepted = accepted_types
        self.max_bytes = max_bytes

    def check_type(self, media_type: str) -> None:
        """Raises UnsupportedType for a media type that is not on the exact list."""
        if media_type not in self._accepted:
            raise UnsupportedType(f"{media_type} is not accepted; convert it to a supported type such as PDF")

    def check(self, principal: Principal, request: UploadRequest, declared_size: int | None) -> str:
        """Refuse what can be refused before a byte is read; the subject the file will belong to.

        Raises TooLarge, UnsupportedType, and NotFound for a subject the principal does not hold.
        """
        if declared_size is not None and declared_size > self.max_bytes:
            raise TooLarge(f"the upload declares {declared_size} bytes; the limit is {self.max_bytes}")
        self.check_type(request.media_type)
        subject = request.subject or principal.own_subject
        if subject not in self._policy.effective_subjects(principal):
            raise NotFound("no such subject")
        return subject

    def upload(self, principal: Principal, request: UploadRequest, content: UploadContent) -> Uploaded:
        """Store the bytes and register the source. Raises what :meth:`check` raises, and TransientError."""
        subject = self.check(principal, request, content.byte_size)
        file_id = uuid.uuid4()
        key = f"{principal.tenant_id}/files/{uuid.uuid4()}"
        with self._units(principal.tenant_id) as uow:
            if subject == principal.own_subject:
                uow.subjects.ensure_own(principal.user)
            uow.files.add_pending(
                NewFile(
                    file_id=file_id,
                    filename=display_name(request.filename),
                    media_type=request.media_type,
                    byte_size=content.byte_size,
                    auth_subject=subject,
                    content_key=key,
                    ingest=request.ingest,
                    priority=request.priority,
                )
            )
            uow.commit()
        self._content.put(key, content.stream, content.byte_size, request.media_type)
        return self._store(principal, request, content, file_id, subject)

    def _store(
        self, principal: Principal, request: UploadRequest, content: UploadContent, file_id: uuid.UUID, subject: str
    ) -> Uploaded:
        with self._units(principal.tenant_id) as uow:
            same = uow.files.find_same(subject, content.sha256)
            stored = uow.files.mark_stored(
                file_id, sha256=content.sha256, byte_size=content.byte_size, media_type=request.media_type
            )
            if not stored:
                raise Conflict("the upload was deleted while it was received")
            source_id = None
            if request.ingest is not IngestMode.NONE:
                file = uow.files.get(file_id, (subject,))
                registered = uow.sources.register(
                    NewSource(file, file.filename, request.ingest is IngestMode.INDEX, request.priority)
                )
                source_id = registered.source_id
            file = uow.files.get(file_id, (subject,))
            uow.commit()
        if source_id is not None:
            self._queue.ring_admission()
        return Uploaded(file, source_id, same.file_id if same else None)

    def add_source(self, principal: Principal, file_id: uuid.UUID) -> uuid.UUID:
        """Add a stored file to the knowledge base; the id of its source, an existing one when equal bytes have one.

        Raises NotFound, and Conflict for a file that is quarantined.
        """
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            file = uow.files.get(file_id, subjects)
            if file.state is not FileState.STORED:
                raise Conflict("the file is quarantined; upload a clean copy")
            registered = uow.sources.register(
                NewSource(file, file.filename, indexed=True, priority=Priority.INTERACTIVE)
            )
            uow.commit()
        self._queue.ring_admission()
        return registered.source_id

    def get(self, principal: Principal, file_id: uuid.UUID) -> StoredFile:
        """Raises NotFound."""
        # Before the unit of work: a request that waits for a second connection while it holds one can wait for ever.
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            return uow.files.get(file_id, subjects)

    def page(self, principal: Principal, limit: int, cursor: str | None) -> ListPage[StoredFile]:
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            return uow.files.page(subjects, limit, cursor)
