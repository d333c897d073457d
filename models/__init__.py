"""SQLAlchemy tables without behaviour, and their migrations."""

from models.base import Base
from models.files import Blob, BlobRef, DeletionReceipt, File, FileVersion
from models.identity import IdempotencyKey, Membership, Subject, Tenant
from models.ingest import Generation, IngestStage, IngestUnit, Source, SourceFile
from models.knowledge import BlockRow, ChunkEmbedding, ChunkRow, ChunkTerm, EmbeddingSet, PageRow

__all__ = [
    "Base",
    "Blob",
    "BlobRef",
    "BlockRow",
    "ChunkEmbedding",
    "ChunkRow",
    "ChunkTerm",
    "DeletionReceipt",
    "EmbeddingSet",
    "File",
    "FileVersion",
    "Generation",
    "IdempotencyKey",
    "IngestStage",
    "IngestUnit",
    "Membership",
    "PageRow",
    "Source",
    "SourceFile",
    "Subject",
    "Tenant",
]
