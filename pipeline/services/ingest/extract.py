"""extract: windows of pages to lines, then one document pass to blocks and a page map."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from pipeline import flow
from pipeline.errors import Failure
from pipeline.ledger import UnitPlan, Work
from pipeline.ports import DocumentParser
from pipeline.services.filecache import FileCache
from pipeline.services.ingest.handler import FanOut, Finish, UnitFinish, Watch
from pipeline.stages.extract import ExtractLimits, assemble
from pipeline.types import WindowText
from pipeline.unit_of_work import UnitOfWork

_WINDOW = TypeAdapter(WindowText)


class Extract:
    def __init__(self, cache: FileCache, parser: DocumentParser, limits: ExtractLimits) -> None:
        self._cache = cache
        self._parser = parser
        self._limits = limits

    def run(self, work: Work, watch: Watch) -> Finish | FanOut | Failure:
        content = self._cache.fetch(work.content_key, work.sha256)
        watch.point("bytes-read")
        profile = self._parser.profile(content, work.media_type)
        if isinstance(profile, Failure):
            return profile
        if profile.pages >= flow.SINGLE_WINDOW_PAGES:
            return FanOut(_windows(profile.pages))
        watch.step(0, profile.pages)
        # Anew: in the minutes that opening may take, other documents can push the copy out.
        content = self._cache.fetch(work.content_key, work.sha256)
        window = self._parser.read(content, work.media_type, 1, profile.pages)
        if isinstance(window, Failure):
            return window
        read = window
        return Finish(lambda uow: self._store(uow, work, [read]))

    def run_unit(self, work: Work, plan: UnitPlan, watch: Watch) -> UnitFinish | Failure:
        content = self._cache.fetch(work.content_key, work.sha256)
        watch.point("bytes-read")
        window = self._parser.read(content, work.media_type, plan.first, plan.last)
        if isinstance(window, Failure):
            return window
        body = _WINDOW.dump_json(window, exclude_defaults=True)
        return UnitFinish(lambda uow: uow.blobs.put(body, owner=work.ref.blob_owner))

    def gather(self, uow: UnitOfWork, work: Work, outputs: Sequence[str]) -> Failure | None:
        return self._store(uow, work, [_WINDOW.validate_json(uow.blobs.get(digest)) for digest in outputs])

    def _store(self, uow: UnitOfWork, work: Work, windows: Sequence[WindowText]) -> Failure | None:
        document = assemble(windows, self._limits)
        if isinstance(document, Failure):
            return document
        uow.documents.replace(work.ref, document)
        uow.sources.describe(
            work.ref,
            title=document.title,
            warnings=document.warnings,
            pages=len(document.pages),
            blocks=len(document.blocks),
        )
        return None


def _windows(pages: int) -> list[UnitPlan]:
    size = flow.EXTRACT_WINDOW_PAGES
    return [
        UnitPlan(number, first, min(first + size - 1, pages)) for number, first in enumerate(range(1, pages + 1, size))
    ]
