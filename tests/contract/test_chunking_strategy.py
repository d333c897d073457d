"""What a ChunkingStrategy holds, whatever counts its tokens.

There is one adapter: the strategy is a pure function of blocks with its tokenizer passed in, so that a double would
only be a worse copy of it. It is held to the contract with the pinned tokenizer and with plain words.
"""

from __future__ import annotations

import hashlib

import pytest

from pipeline.engines import tokenizer
from pipeline.ports import ChunkingStrategy
from pipeline.stages.chunk import ChunkLimits, StructureAwareChunker
from pipeline.types import Block, BlockKind, Box, Cell, PageMethod, Table

TABLE = Block(
    BlockKind.TABLE,
    "",
    table=Table(2, 2, (Cell(0, 0, "dock"), Cell(0, 1, "berths"), Cell(1, 0, "East"), Cell(1, 1, "4"))),
)
DOCUMENT = (
    Block(BlockKind.HEADER, "Port authority", page=1),
    Block(BlockKind.HEADING, "Harbour", level=1, page=1),
    Block(BlockKind.PARAGRAPH, "Ships are counted twice a day.", page=1, boxes=(Box(1, 0.1, 0.2, 0.9, 0.3),)),
    Block(BlockKind.PARAGRAPH, "nobody reads this", page=1, hidden=True),
    Block(BlockKind.HEADING, "Docks", level=2, page=2),
    TABLE,
    Block(BlockKind.PARAGRAPH, "word " * 400, page=2, method=PageMethod.OCR, confidence=0.5),
)


@pytest.fixture(params=["pinned", "words"])
def strategy(request: pytest.FixtureRequest) -> ChunkingStrategy:
    if request.param == "pinned":
        pinned = tokenizer.pinned()
        return StructureAwareChunker(pinned.count, ChunkLimits(), tokenizer=pinned.version)
    return StructureAwareChunker(lambda text: len(text.split()), ChunkLimits(40, 10), tokenizer="words")


def test_chunks_are_numbered_from_0_and_name_their_text(strategy: ChunkingStrategy) -> None:
    chunks = strategy.split(DOCUMENT)
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    assert len(chunks) >= 3
    for chunk in chunks:
        assert chunk.content.strip()
        assert chunk.content_hash == hashlib.sha256(chunk.indexed_text.encode()).hexdigest()
        assert chunk.token_count > 0
        assert 0 <= chunk.first_block <= chunk.last_block < len(DOCUMENT)


def test_every_visible_word_is_in_a_chunk_and_no_other(strategy: ChunkingStrategy) -> None:
    chunks = strategy.split(DOCUMENT)
    indexed = " ".join(chunk.indexed_text for chunk in chunks)
    for shown in ("Harbour", "Ships are counted twice a day.", "Docks", "berths", "East"):
        assert shown in indexed
    for left_out in ("Port authority", "nobody reads this"):
        assert left_out not in indexed
    assert "Harbour" in chunks[0].heading_path


def test_a_chunk_leads_back_to_its_place_and_says_how_sure_it_is(strategy: ChunkingStrategy) -> None:
    chunks = strategy.split(DOCUMENT)
    counted = next(chunk for chunk in chunks if "counted twice" in chunk.content)
    assert (counted.location.pages, counted.method, counted.confidence) == ((1,), PageMethod.NATIVE, None)
    assert counted.location.boxes
    recognised = chunks[-1]
    assert (recognised.location.pages, recognised.method, recognised.confidence) == ((2,), PageMethod.OCR, 0.5)


def test_the_same_blocks_give_the_same_chunks(strategy: ChunkingStrategy) -> None:
    assert strategy.version
    assert strategy.split(DOCUMENT) == strategy.split(list(DOCUMENT))


def test_nothing_to_index_is_no_chunk(strategy: ChunkingStrategy) -> None:
    assert strategy.split(()) == ()
    assert strategy.split(DOCUMENT[:1]) == ()
