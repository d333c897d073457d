"""Windows: how much of a document is read at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pipeline.errors import Invalid
from pipeline.stages import tables
from pipeline.types import Block

WINDOW_BLOCKS = 50
WINDOW_CHARS = 24_000


class Window(NamedTuple):
    """Inclusive indexes of the first and last block, and the block to continue from (None at the end).

    ``last`` is ``first - 1`` when there is no block from ``first`` on.
    """

    first: int
    last: int
    next: int | None


def window(blocks: Sequence[Block], from_block: int = 0, limit: int = WINDOW_BLOCKS) -> Window:
    """The window of ``blocks`` that begins at index ``from_block``: whole blocks, at least one when there is one.

    At most ``limit`` (never more than 50) blocks and 24,000 characters. Indexes count in the sequence given; a
    caller that holds a slice gives one block more than ``limit`` and adds the slice's offset.
    Raises :class:`~pipeline.errors.Invalid` for a negative ``from_block`` or a ``limit`` under 1.
    """
    if from_block < 0:
        raise Invalid("from_block counts from 0")
    if limit < 1:
        raise Invalid("limit is at least 1")
    stop, characters = from_block, 0
    ceiling = min(len(blocks), from_block + min(limit, WINDOW_BLOCKS))
    while stop < ceiling:
        characters += _characters(blocks[stop])
        if characters > WINDOW_CHARS and stop > from_block:
            break
        stop += 1
    return Window(from_block, stop - 1, stop if from_block <= stop < len(blocks) else None)


def _characters(block: Block) -> int:
    return len("\n".join(tables.lines(block.table))) if block.table is not None else len(block.text)
