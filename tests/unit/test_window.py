"""A window is whole blocks: at most fifty, at most 24,000 characters, at least one."""

from __future__ import annotations

import pytest

from pipeline.errors import Invalid
from pipeline.stages.window import window
from pipeline.types import Block, BlockKind, Cell, Table


def blocks(*sizes: int) -> list[Block]:
    return [Block(BlockKind.PARAGRAPH, "x" * size) for size in sizes]


def test_at_most_fifty_blocks() -> None:
    many = blocks(*[10] * 120)
    assert window(many) == (0, 49, 50)
    assert window(many, 50) == (50, 99, 100)
    assert window(many, 100) == (100, 119, None)
    assert window(many, 0, 500) == (0, 49, 50)
    assert window(many, 3, 2) == (3, 4, 5)


def test_at_most_24_000_characters() -> None:
    assert window(blocks(20_000, 4_000, 1)) == (0, 1, 2)
    assert window(blocks(20_000, 4_001)) == (0, 0, 1)


def test_at_least_one_block() -> None:
    assert window(blocks(1, 100_000, 1), 1) == (1, 1, 2)
    assert window(blocks(100_000)) == (0, 0, None)


def test_a_table_counts_as_its_markdown() -> None:
    cells = tuple(Cell(row, 0, "x" * 1_000) for row in range(30))
    table = Block(BlockKind.TABLE, "", table=Table(30, 1, cells))
    assert window([*blocks(1), table]) == (0, 0, 1)


def test_past_the_end_is_empty() -> None:
    assert window(blocks(1, 1), 2) == (2, 1, None)
    assert window(blocks(1, 1), 9) == (9, 8, None)
    assert window([], 0) == (0, -1, None)


@pytest.mark.parametrize(("first", "limit"), [(-1, 50), (0, 0)])
def test_what_cannot_be_asked(first: int, limit: int) -> None:
    with pytest.raises(Invalid):
        window(blocks(1), first, limit)
