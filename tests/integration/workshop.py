"""Documents through every stage in one process: the real runner, ledger and handlers on the real database.

What a chain of tasks does is done by :meth:`Workshop.drive`: run a stage, go on or stop as the step says, then answer
the bells it rang.
"""

from __future__ import annotations

import hashlib
import io
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline import flow
from pipeline.engines.media import ACCEPTED_NAMES
from pipeline.errors import Failure
from pipeline.flow import Stage
from pipeline.ledger import Candidate
from pipeline.ports import Doorbell, FileInspector, OcrProvider
from pipeline.records import Source, StoredFile
from pipeline.services.filecache import FileCache
from pipeline.services.files import FileService, UploadContent, Uploaded, UploadRequest
from pipeline.services.ingest.chunk import ChunkBlocks
from pipeline.services.ingest.embed import Embed
from pipeline.services.ingest.extract import Extract
from pipeline.services.ingest.handler import StageHandler
from pipeline.services.ingest.keywords import Keywords
from pipeline.services.ingest.ocr import Ocr
from pipeline.services.ingest.publish import Publish
from pipeline.services.ingest.register import Register
from pipeline.services.leases import LeaseKeeper
from pipeline.services.reading import ReadingService
from pipeline.services.runner import Next, NoFaults, StageRunner, Step
from pipeline.services.search import SearchConfig, SearchRequest, SearchService
from pipeline.stages.chunk import ChunkLimits, StructureAwareChunker
from pipeline.stages.extract import ExtractLimits
from pipeline.testing.content import MemoryContentStore
from pipeline.testing.embedding import HashedWords
from pipeline.testing.engines import MemoryInspector, MemoryOcr, MemoryParser
from pipeline.testing.task_queue import MemoryTaskQueue
from pipeline.types import (
    EmbeddingModel,
    Found,
    GenerationRef,
    Hit,
    IngestMode,
    Principal,
    Priority,
    SearchMode,
    WindowText,
)
from storage.policy import PostgresPolicy
from storage.retriever import PostgresRetriever
from tests.state import MODEL, State

THRESHOLD = 0.7
LIMITS = ExtractLimits(max_blocks=10_000, max_text_bytes=1_000_000, max_cells=10_000)
PDF = "application/pdf"


class Embedder:
    """EmbeddingProvider of the tests' set: notes what it was asked, and fails when it is told to."""

    def __init__(self) -> None:
        self._words = HashedWords(MODEL.dimensions)
        self.asked: list[str] = []
        self.trouble: list[Exception] = []

    def model(self) -> EmbeddingModel:
        return MODEL

    def check(self) -> None:
        """It is always there."""

    def embed(self, texts: Sequence[str]) -> tuple[tuple[float, ...], ...]:
        if self.trouble:
            raise self.trouble.pop(0)
        self.asked.extend(texts)
        return self._words.embed(texts)

    def count_tokens(self, texts: Sequence[str]) -> tuple[int, ...]:
        return self._words.count_tokens(texts)


class Parser(MemoryParser):
    """The parser in memory, with something to happen each time it reads: a failure it returns, or an interruption."""

    def __init__(self) -> None:
        self.happens: list[Callable[[], Failure | None]] = []
        self.read_pages: list[tuple[int, int]] = []

    def read(self, content: Path, media_type: str, first_page: int, last_page: int) -> WindowText | Failure:
        self.read_pages.append((first_page, last_page))
        failure = self.happens.pop(0)() if self.happens else None
        return failure or super().read(content, media_type, first_page, last_page)


@dataclass
class Workshop:
    """One tenant's pipeline. Engines are those in memory unless a test brings others."""

    state: State
    directory: Path
    parser: Parser = field(default_factory=Parser)
    ocr: OcrProvider = field(default_factory=MemoryOcr)
    inspector: FileInspector = field(default_factory=MemoryInspector)
    embedder: Embedder = field(default_factory=Embedder)
    content: MemoryContentStore = field(default_factory=MemoryContentStore)
    queue: MemoryTaskQueue = field(default_factory=MemoryTaskQueue)
    replaced: dict[Stage, StageHandler] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Tests that share the database may have made another set the first one.
        self.state.sql(
            "UPDATE tenants SET active_set = :set WHERE tenant_id = :t",
            set=self.state.embedding_set,
            t=self.state.tenant_id,
        )
        self.cache = FileCache(self.directory / "files", self.content)
        self.policy = PostgresPolicy(self.state.worker)
        self.files = FileService(
            self.state.units, self.policy, self.content, self.queue, ACCEPTED_NAMES, 100 * 1024 * 1024
        )
        self.reading = ReadingService(self.state.units, self.policy)

    def principal(self, user: str = "ana") -> Principal:
        return Principal(self.state.tenant_id, user)

    @property
    def runner(self) -> StageRunner:
        return StageRunner(self.state.units, self._handlers(), LeaseKeeper(self.state.units, 5.0), NoFaults())

    def _handlers(self) -> Mapping[Stage, StageHandler]:
        units, cache = self.state.units, self.cache
        chunker = StructureAwareChunker(lambda text: len(text.split()), ChunkLimits(40, 10), tokenizer="words")
        handlers: dict[Stage, StageHandler] = {
            Stage.REGISTER: Register(cache, self.inspector),
            Stage.EXTRACT: Extract(cache, self.parser, LIMITS),
            Stage.OCR: Ocr(units, cache, self.ocr, ("eng",), THRESHOLD),
            Stage.CHUNK: ChunkBlocks(units, chunker),
            Stage.EMBED: Embed(units, self.embedder, 32),
            Stage.KEYWORDS: Keywords(units),
            Stage.PUBLISH: Publish(),
        }
        return handlers | self.replaced

    # --- a document's way ---

    def upload(
        self,
        body: bytes,
        filename: str = "note.txt",
        media_type: str = "text/plain",
        *,
        user: str = "ana",
        ingest: IngestMode = IngestMode.INDEX,
    ) -> GenerationRef:
        """Uploaded and admitted."""
        request = UploadRequest(filename, media_type, ingest=ingest, priority=Priority.BULK)
        uploaded = self._upload(body, request, user)
        assert uploaded.source_id is not None
        ref = GenerationRef(self.state.tenant_id, uploaded.source_id, 1)
        self.admit(ref)
        return ref

    def upload_again(self, body: bytes, filename: str, media_type: str) -> StoredFile:
        """Equal bytes once more: nothing is left to admit."""
        uploaded = self._upload(body, UploadRequest(filename, media_type), "ana")
        assert uploaded.duplicate_of is not None
        return uploaded.file

    def _upload(self, body: bytes, request: UploadRequest, user: str) -> Uploaded:
        content = UploadContent(io.BytesIO(body), len(body), hashlib.sha256(body).hexdigest())
        return self.files.upload(self.principal(user), request, content)

    def admit(self, ref: GenerationRef) -> None:
        with self.state.units(ref.tenant_id) as uow:
            assert uow.ledger.admit(Candidate(ref, Priority.BULK)) is not None
            uow.commit()

    def run(self, ref: GenerationRef, stage: Stage, unit: int | None = None) -> Step:
        return self.runner.run(ref, stage, unit, alone=False)

    def drive(self, ref: GenerationRef, start: Stage = Stage.REGISTER, until: Stage | None = None) -> list[Step]:
        """Every step from ``start`` on, as a chain and its bells would run them; stops before ``until``."""
        steps: list[Step] = []
        bells = deque([Doorbell(ref, start, Priority.BULK)])
        runner = self.runner
        while bells:
            bell = bells.popleft()
            chain = [spec.stage for spec in flow.remaining(bell.stage)] if bell.unit is None else [bell.stage]
            for stage in chain:
                if stage is until:
                    return steps
                step = runner.run(bell.ref, stage, bell.unit, alone=bell.alone)
                steps.append(step)
                bells.extend(step.bells)
                if step.next is Next.STOP:
                    break
        return steps

    def ingest(
        self,
        body: bytes,
        filename: str = "note.txt",
        media_type: str = "text/plain",
        *,
        user: str = "ana",
        ingest: IngestMode = IngestMode.INDEX,
    ) -> Source:
        ref = self.upload(body, filename, media_type, user=user, ingest=ingest)
        self.drive(ref)
        return self.source(ref, user)

    # --- what became of it ---

    def source(self, ref: GenerationRef, user: str = "ana") -> Source:
        return self.reading.source(self.principal(user), ref.source_id)

    def stage(self, ref: GenerationRef, stage: Stage, *columns: str) -> tuple[object, ...]:
        """Columns of a stage's row in the ledger."""
        (row,) = self.state.sql(
            f"SELECT {', '.join(columns)} FROM ingest_stages"
            " WHERE source_id = :s AND generation = :g AND stage = :stage",
            s=ref.source_id,
            g=ref.generation,
            stage=stage,
        )
        return row

    def count(self, table: str, ref: GenerationRef) -> int:
        """Rows of a table that belong to the source."""
        key = "source_no" if table in ("chunk_terms", "chunk_embeddings") else "source_id"
        ((found,),) = self.state.sql(
            f"SELECT count(*) FROM {table} WHERE tenant_id = :t"
            f" AND {key} = (SELECT {key} FROM sources WHERE source_id = :s)",
            t=ref.tenant_id,
            s=ref.source_id,
        )
        assert isinstance(found, int)
        return found

    def blobs(self) -> int:
        ((found,),) = self.state.sql(
            "SELECT (SELECT count(*) FROM blobs WHERE tenant_id = :t)"
            " + (SELECT count(*) FROM blob_refs WHERE tenant_id = :t)",
            t=self.state.tenant_id,
        )
        assert isinstance(found, int)
        return found

    def make_due(self, ref: GenerationRef) -> None:
        """Let every back-off be over."""
        for table in ("ingest_stages", "ingest_units"):
            self.state.sql(f"UPDATE {table} SET available_at = clock_timestamp() WHERE source_id = :s", s=ref.source_id)

    def hits(self, query: str, user: str = "ana") -> tuple[Hit, ...]:
        service = SearchService(
            self.policy,
            lambda tenant: PostgresRetriever(self.state.worker, tenant, low_confidence_threshold=THRESHOLD),
            self.embedder,
            SearchConfig(relative_floor=0.4),
        )
        answer = service.search(self.principal(user), SearchRequest(query, SearchMode.KEYWORD, 10))
        return answer.hits if isinstance(answer, Found) else ()
