"""The documents of one ``docmill ingest``: found, uploaded, followed to their end."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.engines import media
from pipeline.entrypoints.cli import client
from pipeline.entrypoints.cli.client import Gateway, Problem, Unreachable
from pipeline.entrypoints.cli.outcome import CommandError, Exit
from pipeline.errors import Failure, FailureCode

_AT_ONCE = 4
_ATTEMPTS = 5
_PAUSE_S = 1.0
# A gateway that ended is started again within seconds; the documents go on meanwhile.
_PATIENCE_S = 60.0
_FASTEST_LOOK_S = 0.25
# However many documents there are, the gateway is asked this often.
_LOOKS_PER_S = 20.0
_ENDED = frozenset({"published", "failed", "cancelled", "superseded"})
_NOT_A_FAILURE = frozenset({FailureCode.SKIPPED, FailureCode.EMPTY})
_REFUSALS = {
    "too_large": FailureCode.TOO_LARGE,
    "unsupported_type": FailureCode.UNSUPPORTED_TYPE,
}


@dataclass(eq=False)
class Document:
    """One local file and what became of it. ``source`` is the gateway's last word on it."""

    path: Path
    key: uuid.UUID = field(default_factory=uuid.uuid4)
    file_id: str | None = None
    source_id: str | None = None
    source: Any = None
    refused: Failure | None = None

    @property
    def ended(self) -> bool:
        return self.refused is not None or (self.source is not None and self.source["latest"]["status"] in _ENDED)

    @property
    def failure(self) -> dict[str, Any] | None:
        """As the gateway tells it; in the same form for what was refused before there was a source."""
        if self.refused is not None:
            told = self.refused
            return {"code": told.code, "detail": told.detail, "remedy": told.remedy, "retryable": told.retryable}
        return self.source["failure"] if self.source is not None else None

    @property
    def failed(self) -> bool:
        return self.failure is not None and self.failure["code"] not in _NOT_A_FAILURE

    @property
    def status(self) -> str:
        if self.refused is not None:
            return "failed"
        return str(self.source["status"]) if self.source is not None else "pending"

    def report(self) -> dict[str, Any]:
        """What ``--json`` prints of it."""
        return {
            "path": str(self.path),
            "file_id": self.file_id,
            "source_id": self.source_id,
            "status": self.status,
            "failure": self.failure,
            "pages": self.source["pages"] if self.source is not None else 0,
            "chunks": self.source["chunks"] if self.source is not None else 0,
        }


def find(names: Sequence[str], *, recursive: bool) -> list[Document]:
    """The files named, and with ``recursive`` those below the directories named; hidden ones are left out.

    Raises CommandError for what is not there and for addresses.
    """
    paths: dict[Path, None] = {}
    for name in names:
        if name.lower().startswith(("http://", "https://")):
            raise CommandError(f"{name} is an address; this version takes files, so download it first", Exit.USAGE)
        path = Path(name)
        if path.is_dir():
            if not recursive:
                raise CommandError(f"{name} is a directory; add --recursive to take the files below it", Exit.USAGE)
            paths.update(dict.fromkeys(_below(path)))
        elif path.is_file():
            paths[path] = None
        else:
            raise CommandError(f"{name} is not there or is no file", Exit.USAGE)
    return [Document(path) for path in paths]


def _below(directory: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        yield from (
            path for name in sorted(files) if not name.startswith(".") if (path := Path(parent, name)).is_file()
        )


class Batch:
    """Uploads a few documents at once and looks at the others meanwhile."""

    def __init__(self, gateway: Gateway, documents: Sequence[Document], fields: dict[str, str]) -> None:
        self.documents = documents
        self._gateway = gateway
        self._fields = fields

    def run(self, *, wait: bool) -> Iterator[Document]:
        """Every document whenever there is news of it, until all have ended (or, without ``wait``, are uploaded).

        Raises CommandError when the gateway stays away.
        """
        uploads = ThreadPoolExecutor(_AT_ONCE)
        try:
            under_way = {uploads.submit(self._upload, document): document for document in self.documents}
            yield from self._follow(under_way, wait=wait)
        finally:
            uploads.shutdown(wait=False, cancel_futures=True)

    def _follow(self, under_way: dict[Future[None], Document], *, wait: bool) -> Iterator[Document]:
        uploaded: list[Document] = []
        while under_way or uploaded:
            began = time.monotonic()
            for upload in [upload for upload in under_way if upload.done()]:
                document = under_way.pop(upload)
                upload.result()
                if wait and not document.ended:
                    uploaded.append(document)
                yield document
            for document in uploaded:
                before = document.source
                self._watch(document)
                if document.ended or document.source != before:
                    yield document
            uploaded = [document for document in uploaded if not document.ended]
            if under_way or uploaded:
                pause = max(_FASTEST_LOOK_S, len(uploaded) / _LOOKS_PER_S) - (time.monotonic() - began)
                time.sleep(max(pause, 0.02))

    def _watch(self, document: Document) -> None:
        try:
            document.source = self._look(document)
        except Problem as problem:
            if problem.kind != "not_found":
                raise
            document.refused = Failure(FailureCode.CANCELLED, "The source was deleted while it was ingested.")

    def _look(self, document: Document) -> Any:
        gives_up_at = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._gateway.get(client.source(str(document.source_id)))
            except (Unreachable, Problem) as trouble:
                if trouble.code is not Exit.NOT_REACHABLE or time.monotonic() > gives_up_at:
                    raise
                time.sleep(_PAUSE_S)

    # --- one upload ---

    def _upload(self, document: Document) -> None:
        media_type = media.media_type_for(document.path.name)
        if media_type is None:
            document.refused = _unsupported(document.path)
            return
        try:
            file = self._send(document, media_type)
        except OSError as problem:
            document.refused = Failure(
                FailureCode.MALFORMED, f"The file cannot be read ({problem.strerror or type(problem).__name__})."
            )
            return
        except Problem as refusal:
            document.refused = _refusal(refusal, document.path)
            return
        document.file_id, document.source_id = file["id"], file["source_id"]
        document.source = self._look(document)

    def _send(self, document: Document, media_type: str) -> Any:
        """Repeated with the same key while the gateway is away or still busy with the attempt before."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._gateway.upload(document.path, media_type, self._fields, document.key)
            except (Unreachable, Problem) as trouble:
                again = trouble.code is Exit.NOT_REACHABLE or (
                    isinstance(trouble, Problem) and trouble.kind == "conflict"
                )
                if not again or attempt == _ATTEMPTS or self._never_reached(attempt, trouble):
                    raise
                time.sleep(_PAUSE_S * attempt)
        raise AssertionError("the last attempt returns or raises")

    def _never_reached(self, attempt: int, trouble: CommandError) -> bool:
        """A gateway that is not there at all is said at once."""
        return attempt == 1 and isinstance(trouble, Unreachable) and all(one.file_id is None for one in self.documents)


def _unsupported(path: Path) -> Failure:
    ending = media.extension_of(path.name)
    what = (
        f"Files named .{ending} are not taken." if ending else "The file's name has no extension that tells its type."
    )
    return Failure(FailureCode.UNSUPPORTED_TYPE, what)


def _refusal(refusal: Problem, path: Path) -> Failure:
    """A refused upload as a document's failure; what is no matter of the document propagates."""
    if refusal.kind in _REFUSALS:
        return Failure(_REFUSALS[refusal.kind], refusal.detail)
    if refusal.kind == "invalid" and path.stat().st_size == 0:
        return Failure(FailureCode.EMPTY, "The file has no bytes.")
    raise refusal
