"""The floor: the same stage functions over the same documents, one after another in this one process."""

from __future__ import annotations

import importlib
import resource
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline import bootstrap, flow
from pipeline.engines import media, parser
from pipeline.engines.asking import Asker
from pipeline.engines.inspector import SandboxedInspector
from pipeline.engines.ocr.tesseract import TesseractOcr
from pipeline.engines.sandbox.client import SandboxDeath, SandboxReply
from pipeline.engines.sandbox.jobs import JOBS
from pipeline.errors import Failure
from pipeline.ports import ChunkingStrategy, EmbeddingProvider
from pipeline.settings import Settings
from pipeline.stages.extract import assemble
from pipeline.stages.keywords import terms_of
from pipeline.stages.ocr import merge, pages_needing_ocr
from pipeline.types import Chunk, ExtractedDocument, Json, RecognisedPage


class InProcess:
    """Runs the sandbox's jobs right here. For measuring only: nothing is between the document and this process."""

    def call(
        self, job: str, content: Path, arguments: dict[str, Json], *, timeout_s: float, memory_bytes: int
    ) -> SandboxReply | SandboxDeath:
        del timeout_s, memory_bytes  # nothing is limited here
        entry = JOBS[job]
        function = getattr(importlib.import_module(entry.module), entry.function)
        with content.open("rb") as document:
            return SandboxReply(function(document, arguments), 0, 0.0)


@dataclass(frozen=True, slots=True)
class Floor:
    """The stage functions of a deployment without its pipeline."""

    settings: Settings
    embedder: EmbeddingProvider
    chunker: ChunkingStrategy

    def chunks(self, path: Path) -> tuple[Chunk, ...]:
        """A document's chunks, none when it is refused; everything before embedding."""
        asker = Asker(InProcess(), self.settings.extract_timeout_s, self.settings.sandbox_memory_bytes)
        limits = parser.limits_of(self.settings)
        reader = parser.SandboxedParser(asker, limits)
        media_type = SandboxedInspector(asker).sniff(path, media.media_type_for(path.name) or "", path.name)
        if isinstance(media_type, Failure):
            return ()
        profile = reader.profile(path, media_type)
        if isinstance(profile, Failure):
            return ()
        size = profile.pages if profile.pages < flow.SINGLE_WINDOW_PAGES else flow.EXTRACT_WINDOW_PAGES
        windows = []
        for first in range(1, max(profile.pages, 1) + 1, max(size, 1)):
            window = reader.read(path, media_type, first, min(first + size - 1, profile.pages))
            if isinstance(window, Failure):
                return ()
            windows.append(window)
        document = assemble(windows, bootstrap.extract_limits(self.settings))
        if isinstance(document, Failure):
            return ()
        document = self._recognised(document, path, media_type, TesseractOcr(asker, limits, self._languages()))
        return self.chunker.split(document.blocks)

    def _languages(self) -> tuple[str, ...]:
        return bootstrap.ocr_languages(self.settings)

    def _recognised(
        self, document: ExtractedDocument, path: Path, media_type: str, engine: TesseractOcr
    ) -> ExtractedDocument:
        recognised: list[RecognisedPage] = []
        for page in pages_needing_ocr(document.pages):
            answer = engine.recognize(path, media_type, (page,), self._languages())
            if isinstance(answer, Failure):
                return document
            recognised.extend(answer)
        return merge(document, recognised) if recognised else document

    def embed(self, chunks: Sequence[Chunk]) -> None:
        batch = self.settings.embedding_batch
        for start in range(0, len(chunks), batch):
            self.embedder.embed([chunk.indexed_text for chunk in chunks[start : start + batch]])

    def ingest(self, path: Path) -> int:
        """Everything the pipeline computes for a document; how many chunks it has."""
        chunks = self.chunks(path)
        self.embed(chunks)
        for chunk in chunks:
            terms_of(chunk.indexed_text)
        return len(chunks)


def cpu_s() -> float:
    """CPU seconds so far of this process and the children it waited for."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in usage)
