"""Blocks and page maps in Postgres."""

from __future__ import annotations

from pydantic import TypeAdapter

from pipeline.types import Block, ExtractedDocument, GenerationRef, Page, PageMethod
from storage.rows import Repository, of

_BLOCK = TypeAdapter(Block)
_KEY = "tenant_id = :tenant AND source_id = :source AND generation = :generation"


class PostgresDocuments(Repository):
    """Adapter of :class:`pipeline.unit_of_work.DocumentStore`."""

    def replace(self, ref: GenerationRef, document: ExtractedDocument) -> None:
        self.change(f"DELETE FROM blocks WHERE {_KEY}", **of(ref))
        self.change(f"DELETE FROM pages WHERE {_KEY}", **of(ref))
        if document.blocks:
            self.change(
                "INSERT INTO blocks (tenant_id, source_id, generation, block, page, body)"
                " SELECT :tenant, :source, :generation, n - 1, nullif(p, 0), b"
                " FROM unnest(CAST(:pages AS int[]), CAST(:bodies AS text[])) WITH ORDINALITY AS t(p, b, n)",
                **of(ref),
                pages=[block.page or 0 for block in document.blocks],
                bodies=[_BLOCK.dump_json(block, exclude_defaults=True).decode() for block in document.blocks],
            )
        self.change_many(
            "INSERT INTO pages (tenant_id, source_id, generation, page, width, height, rotation, method, confidence,"
            " garble, warning) VALUES (:tenant, :source, :generation, :page, :width, :height, :rotation, :method,"
            " :confidence, :garble, :warning)",
            [
                {
                    **of(ref),
                    "page": page.page,
                    "width": page.width,
                    "height": page.height,
                    "rotation": page.rotation,
                    "method": page.method,
                    "confidence": page.confidence,
                    "garble": page.garble,
                    "warning": page.warning,
                }
                for page in document.pages
            ],
        )

    def blocks(self, ref: GenerationRef, first: int = 0, limit: int | None = None) -> tuple[Block, ...]:
        rows = self.rows(
            f"SELECT body FROM blocks WHERE {_KEY} AND block >= :first ORDER BY block LIMIT :limit",
            **of(ref),
            first=first,
            limit=limit,
        )
        return tuple(_BLOCK.validate_json(row["body"]) for row in rows)

    def pages(self, ref: GenerationRef) -> tuple[Page, ...]:
        rows = self.rows(
            "SELECT page, width, height, rotation, method, confidence, garble, warning"
            f" FROM pages WHERE {_KEY} ORDER BY page",
            **of(ref),
        )
        return tuple(
            Page(
                page=row["page"],
                width=row["width"],
                height=row["height"],
                rotation=row["rotation"],
                method=PageMethod(row["method"]),
                confidence=row["confidence"],
                garble=row["garble"],
                warning=row["warning"],
            )
            for row in rows
        )
