"""ocr: only the pages that have no usable text; confidence is kept and flagged."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import TypeAdapter

from pipeline import flow
from pipeline.errors import Failure, FailureCode
from pipeline.ledger import UnitPlan, Work
from pipeline.ports import OcrProvider
from pipeline.services.filecache import FileCache
from pipeline.services.ingest.handler import FanOut, Finish, UnitFinish, Watch, nothing_to_save
from pipeline.stages.garble import GARBLED
from pipeline.stages.ocr import merge, pages_needing_ocr
from pipeline.types import BlockKind, ExtractedDocument, Page, PageMethod, RecognisedPage
from pipeline.unit_of_work import UnitOfWork, UnitOfWorkFactory

_RECOGNISED = TypeAdapter(tuple[RecognisedPage, ...])
_FURNITURE = frozenset({BlockKind.HEADER, BlockKind.FOOTER})


class Ocr:
    def __init__(
        self,
        units: UnitOfWorkFactory,
        cache: FileCache,
        engine: OcrProvider,
        languages: tuple[str, ...],
        low_confidence_threshold: float,
    ) -> None:
        self._units = units
        self._cache = cache
        self._engine = engine
        self._languages = languages
        self._threshold = low_confidence_threshold

    def run(self, work: Work, watch: Watch) -> Finish | FanOut | Failure:
        with self._units(work.ref.tenant_id) as uow:
            needed = pages_needing_ocr(uow.documents.pages(work.ref))
        if not needed:
            return Finish(nothing_to_save)
        if not self._engine.available():
            return Finish(lambda uow: self._do_without(uow, work, len(needed)))
        if len(needed) > flow.OCR_UNIT_PAGES:
            return FanOut(_units(needed))
        recognised = self._recognise(work, needed, watch)
        if isinstance(recognised, Failure):
            return recognised
        pages = recognised
        return Finish(lambda uow: self._store(uow, work, pages))

    def run_unit(self, work: Work, plan: UnitPlan, watch: Watch) -> UnitFinish | Failure:
        recognised = self._recognise(work, plan.items or (), watch)
        if isinstance(recognised, Failure):
            return recognised
        body = _RECOGNISED.dump_json(recognised, exclude_defaults=True)
        return UnitFinish(lambda uow: uow.blobs.put(body, owner=work.ref.blob_owner))

    def gather(self, uow: UnitOfWork, work: Work, outputs: Sequence[str]) -> Failure | None:
        pages = [page for digest in outputs for page in _RECOGNISED.validate_json(uow.blobs.get(digest))]
        return self._store(uow, work, pages)

    def _recognise(self, work: Work, pages: Sequence[int], watch: Watch) -> tuple[RecognisedPage, ...] | Failure:
        self._cache.fetch(work.content_key, work.sha256)
        watch.point("bytes-read")
        recognised: list[RecognisedPage] = []
        for done, page in enumerate(pages):
            watch.step(done, len(pages))
            # For each page anew: in the minutes that a page may take, other documents can push the copy out.
            content = self._cache.fetch(work.content_key, work.sha256)
            answer = self._engine.recognize(content, work.media_type, (page,), self._languages)
            if isinstance(answer, Failure):
                return answer
            recognised.extend(answer)
        return tuple(recognised)

    def _store(self, uow: UnitOfWork, work: Work, recognised: Sequence[RecognisedPage]) -> Failure | None:
        before = ExtractedDocument(uow.documents.blocks(work.ref), uow.documents.pages(work.ref))
        document = merge(before, recognised)
        if not _has_text(document):
            return _wordless(work, "OCR found no text in it.")
        uow.documents.replace(work.ref, document)
        read = [page for page in document.pages if page.method in (PageMethod.OCR, PageMethod.MIXED)]
        sure = [page.confidence for page in read if page.confidence is not None]
        confidence = sum(sure) / len(sure) if sure else None
        # Where recognition was worse still, a page keeps the text that its fonts garbled.
        low = any(value < self._threshold for value in sure) or bool(_garbled(document))
        uow.sources.rate(
            work.ref,
            confidence=confidence,
            low_confidence=low,
            warnings=_warnings(read, self._threshold),
            blocks=len(document.blocks),
        )
        return None

    def _do_without(self, uow: UnitOfWork, work: Work, needed: int) -> Failure | None:
        document = ExtractedDocument(uow.documents.blocks(work.ref), uow.documents.pages(work.ref))
        garbled = _garbled(document)
        if not _has_text(document, apart_from=garbled):
            return _wordless(work, "It has no usable text layer, and no OCR engine is installed.")
        warning = f"{needed} pages have no usable text and were skipped: no OCR engine is installed."
        uow.sources.rate(
            work.ref, confidence=None, low_confidence=bool(garbled), warnings=(warning,), blocks=len(document.blocks)
        )
        return None


def _units(pages: Sequence[int]) -> list[UnitPlan]:
    size = flow.OCR_UNIT_PAGES
    parts = [tuple(pages[start : start + size]) for start in range(0, len(pages), size)]
    return [UnitPlan(number, part[0], part[-1], part) for number, part in enumerate(parts)]


def _has_text(document: ExtractedDocument, apart_from: frozenset[int] = frozenset()) -> bool:
    return any(
        (block.text.strip() or block.table is not None) and not block.hidden and block.kind not in _FURNITURE
        for block in document.blocks
        if block.page not in apart_from
    )


def _garbled(document: ExtractedDocument) -> frozenset[int]:
    """Pages whose own text is not usable and was not replaced."""
    kept = (PageMethod.NATIVE, PageMethod.SKIPPED)
    return frozenset(page.page for page in document.pages if page.garble >= GARBLED and page.method in kept)


def _wordless(work: Work, detail: str) -> Failure:
    if work.media_type.startswith("image/"):
        return Failure(FailureCode.NO_VISION, f"It is an image without readable text. {detail}")
    return Failure(FailureCode.NO_TEXT_LAYER, detail)


def _warnings(pages: Sequence[Page], threshold: float) -> tuple[str, ...]:
    low = [str(page.page) for page in pages if page.confidence is not None and page.confidence < threshold]
    if not low:
        return ()
    return (f"Text recognition was unsure on page {', '.join(low)}: check it against the original.",)
