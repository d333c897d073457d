"""What the tests of the document readers share."""

from __future__ import annotations

import dataclasses

from pipeline.engines.documents.sink import Limits
from pipeline.types import Block, BlockKind, WindowText

LIMITS = Limits(
    max_pages=2_000,
    max_text_bytes=20 * 1024 * 1024,
    max_blocks=200_000,
    max_cells=2_000_000,
    max_inflated_bytes=512 * 1024 * 1024,
    max_inflate_ratio=200,
    max_image_pixels=40_000_000,
)


def limits(**changes: int) -> Limits:
    return dataclasses.replace(LIMITS, **changes)


def outline(window: WindowText) -> list[str]:
    """Every block in a line: its kind (``h2``, ``p``, ``li0 -``, ``code py``, ``table 2x3`` …) and its text."""
    return [f"{_kind(block)}: {_text(block)}" for block in window.blocks]


def _kind(block: Block) -> str:
    match block.kind:
        case BlockKind.HEADING:
            name = f"h{block.level}"
        case BlockKind.PARAGRAPH:
            name = "p"
        case BlockKind.LIST_ITEM:
            name = f"li{block.level} {block.marker}"
        case BlockKind.CODE:
            name = f"code {block.language or ''}".strip()
        case BlockKind.TABLE:
            assert block.table is not None
            name = f"table {block.table.rows}x{block.table.columns}"
        case kind:
            name = kind.value
    return f"{name} hidden" if block.hidden else name


def _text(block: Block) -> str:
    if block.table is None:
        return block.text
    lines: dict[int, list[str]] = {cell.row: [] for cell in block.table.cells}
    for cell in block.table.cells:
        span = f"<{cell.row_span}x{cell.column_span}>" if (cell.row_span, cell.column_span) != (1, 1) else ""
        lines[cell.row].append(("*" if cell.header else "") + cell.text + span)
    return " / ".join(" | ".join(cells) for cells in lines.values())
