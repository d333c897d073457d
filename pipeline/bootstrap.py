"""The composition root: settings to adapters to services. Nothing here is built at import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from sqlalchemy import Engine

from pipeline.engines import parser
from pipeline.engines.asking import Asker
from pipeline.engines.embedding.factory import build_embedder
from pipeline.engines.inspector import SandboxedInspector
from pipeline.engines.media import ACCEPTED_NAMES
from pipeline.engines.ocr.tesseract import TesseractOcr
from pipeline.engines.sandbox.client import SandboxClient
from pipeline.engines.tokenizer import PINNED_SHA256, pinned
from pipeline.flow import Stage
from pipeline.ports import EmbeddingProvider
from pipeline.services.admission import AdmissionService
from pipeline.services.deletion import DeletionRequests, DeletionService
from pipeline.services.filecache import FileCache
from pipeline.services.files import FileService
from pipeline.services.idempotency import IdempotencyService
from pipeline.services.identity import TenantDirectory
from pipeline.services.ingest.chunk import ChunkBlocks
from pipeline.services.ingest.embed import Embed
from pipeline.services.ingest.extract import Extract
from pipeline.services.ingest.handler import StageHandler
from pipeline.services.ingest.keywords import Keywords
from pipeline.services.ingest.ocr import Ocr
from pipeline.services.ingest.publish import Publish
from pipeline.services.ingest.register import Register
from pipeline.services.leases import LeaseKeeper
from pipeline.services.readiness import ReadinessService
from pipeline.services.reading import ReadingService
from pipeline.services.runner import Faults, StageRunner
from pipeline.services.search import SearchConfig, SearchService
from pipeline.services.sweeps import SweepService
from pipeline.settings import Settings, require
from pipeline.stages.chunk import ChunkLimits, StructureAwareChunker
from pipeline.stages.extract import ExtractLimits
from storage import migrate as migrations
from storage.content import S3ContentStore
from storage.engine import build_engine
from storage.engine import check as check_postgres
from storage.identity import ensure_embedding_set, tenant_exists
from storage.policy import PostgresPolicy
from storage.preflight import preflight, preflight_tenants
from storage.retriever import PostgresRetriever
from storage.sweep import PostgresSweepFinder
from storage.task_queue import CeleryTaskQueue, producer
from storage.unit_of_work import PostgresUnits

# Beside the worker's own pool: one connection that holds a lock, one that finds.
SWEEP_POOL = 2


@dataclass(frozen=True, slots=True)
class WorkerServices:
    """What a worker's tasks call."""

    runner: StageRunner
    admission: AdmissionService
    sweeps: SweepService
    deletions: DeletionService


@dataclass(frozen=True, slots=True)
class GatewayServices:
    """What the gateway's routes call."""

    files: FileService
    reading: ReadingService
    deletions: DeletionRequests
    search: SearchService
    tenants: TenantDirectory
    idempotency: IdempotencyService
    readiness: ReadinessService


def engine(settings: Settings, role: str, *, pool_size: int | None = None) -> Engine:
    """The engine of a role: its own URL, or the common one. Raises ConfigurationError when neither is set."""
    url = getattr(settings, f"database_url_{role}") or settings.database_url
    dsn = require(url, f"DOCMILL_DATABASE_URL_{role.upper()}", "a postgresql:// URL")
    return build_engine(
        dsn,
        pool_size=pool_size or settings.database_pool_size,
        application=f"docmill-{role}",
        ping=role != "worker",
    )


def content_store(settings: Settings) -> S3ContentStore:
    return S3ContentStore(
        endpoint=require(settings.s3_endpoint, "DOCMILL_S3_ENDPOINT", "host:port of an S3 service"),
        access_key=require(settings.s3_access_key, "DOCMILL_S3_ACCESS_KEY", "the S3 access key"),
        secret_key=require(settings.s3_secret_key, "DOCMILL_S3_SECRET_KEY", "the S3 secret key"),
        bucket=settings.s3_bucket,
        region=settings.s3_region,
        secure=settings.s3_secure,
    )


def chunker() -> StructureAwareChunker:
    tokenizer = pinned()
    return StructureAwareChunker(tokenizer.count, ChunkLimits(), tokenizer=f"wordpiece-{PINNED_SHA256[:12]}")


def extract_limits(settings: Settings) -> ExtractLimits:
    return ExtractLimits(
        max_blocks=settings.max_blocks, max_text_bytes=settings.max_text_bytes, max_cells=settings.max_cells
    )


def ocr_languages(settings: Settings) -> tuple[str, ...]:
    return tuple(language for language in settings.ocr_languages.replace("+", ",").split(",") if language)


def handlers(
    settings: Settings, units: PostgresUnits, cache: FileCache, sandbox: SandboxClient, embedder: EmbeddingProvider
) -> Mapping[Stage, StageHandler]:
    """Every stage's handler over these adapters."""
    limits = parser.limits_of(settings)
    asker = Asker(sandbox, settings.extract_timeout_s, settings.sandbox_memory_bytes)
    return MappingProxyType(
        {
            Stage.REGISTER: Register(cache, SandboxedInspector(asker)),
            Stage.EXTRACT: Extract(cache, parser.SandboxedParser(asker, limits), extract_limits(settings)),
            Stage.OCR: Ocr(
                units,
                cache,
                TesseractOcr(asker, limits, ocr_languages(settings)),
                ocr_languages(settings),
                settings.low_confidence_threshold,
            ),
            Stage.CHUNK: ChunkBlocks(units, chunker()),
            Stage.EMBED: Embed(units, embedder, settings.embedding_batch),
            Stage.KEYWORDS: Keywords(units),
            Stage.PUBLISH: Publish(),
        }
    )


def worker_services(settings: Settings, work_dir: Path, faults: Faults) -> WorkerServices:
    """The services of one worker process. Builds engines and clients, connects to nothing."""
    units = PostgresUnits(engine(settings, "worker"), settings.lease_s)
    finder = PostgresSweepFinder(engine(settings, "sweep", pool_size=SWEEP_POOL))
    content = content_store(settings)
    cache = FileCache(work_dir / "files", content)
    sandbox = SandboxClient(work_dir / "sandbox")
    deletions = DeletionService(units, content)
    return WorkerServices(
        runner=StageRunner(
            units,
            handlers(settings, units, cache, sandbox, build_embedder(settings)),
            LeaseKeeper(units, settings.heartbeat_s),
            faults,
        ),
        admission=AdmissionService(finder, units, settings.worker_processes),
        sweeps=SweepService(finder, units, deletions, settings.superseded_retention_s),
        deletions=deletions,
    )


def check_worker(settings: Settings, *, embeds: bool) -> None:
    """What must hold before a worker takes its first task.

    Raises ConfigurationError with one line to act on, and TransientError when a dependency does not answer.
    """
    for role in ("worker", "sweep"):
        checked = engine(settings, role, pool_size=1)
        preflight(checked)
        if role == "worker":
            preflight_tenants(checked)
        checked.dispose()
    content_store(settings).ensure_bucket()
    if embeds:
        build_embedder(settings).check()


def gateway_services(settings: Settings) -> GatewayServices:
    """The services of the gateway, after its preflight. Raises ConfigurationError and TransientError."""
    broker_url = require(settings.broker_url, "DOCMILL_BROKER_URL", "a Redis or RabbitMQ URL")
    gateway = engine(settings, "gateway")
    preflight(gateway)
    preflight_tenants(gateway)
    units = PostgresUnits(gateway, settings.lease_s)
    policy = PostgresPolicy(gateway)
    queue = CeleryTaskQueue(producer(broker_url, settings.broker_key_prefix))
    content = content_store(settings)
    # Apart from the requests' pool: a full pool is no reason to call Postgres down.
    probing = engine(settings, "gateway", pool_size=1)
    return GatewayServices(
        files=FileService(units, policy, content, queue, ACCEPTED_NAMES, settings.max_bytes),
        reading=ReadingService(units, policy),
        deletions=DeletionRequests(units, policy, queue),
        search=SearchService(
            policy,
            lambda tenant_id: PostgresRetriever(
                gateway, tenant_id, low_confidence_threshold=settings.low_confidence_threshold
            ),
            build_embedder(settings),
            SearchConfig(relative_floor=settings.relative_floor),
        ),
        tenants=TenantDirectory(lambda tenant_id: tenant_exists(gateway, tenant_id)),
        idempotency=IdempotencyService(units),
        readiness=ReadinessService(
            {"postgres": lambda: check_postgres(probing), "broker": queue.check, "s3": content.check}
        ),
    )


def migrate(settings: Settings) -> None:
    """Bring the schema up to date and make sure the configured model has its embedding set."""
    url = settings.database_url_migrator or settings.database_url
    dsn = require(url, "DOCMILL_DATABASE_URL_MIGRATOR", "a postgresql:// URL of docmill_migrator")
    migrations.upgrade(dsn)
    migrator = engine(settings, "migrator", pool_size=1)
    ensure_embedding_set(migrator, build_embedder(settings).model())
    migrator.dispose()
