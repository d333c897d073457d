"""register: the bytes are what was stored, and they are of a type that is read here."""

from __future__ import annotations

from pipeline.errors import Failure
from pipeline.ledger import Work
from pipeline.ports import FileInspector
from pipeline.services.filecache import FileCache
from pipeline.services.ingest.handler import Finish, Undivided, Watch
from pipeline.unit_of_work import UnitOfWork


class Register(Undivided):
    def __init__(self, cache: FileCache, inspector: FileInspector) -> None:
        self._cache = cache
        self._inspector = inspector

    def run(self, work: Work, watch: Watch) -> Finish | Failure:
        content = self._cache.fetch(work.content_key, work.sha256)
        watch.point("bytes-read")
        found = self._inspector.sniff(content, work.declared_type, work.filename)
        if isinstance(found, Failure):
            return found
        media_type = found

        def save(uow: UnitOfWork) -> None:
            uow.sources.set_media_type(work.ref, media_type)

        return Finish(save)
