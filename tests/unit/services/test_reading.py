"""The use cases of reading: windows that never cut a block, and why there is nothing to read."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

import pytest

from pipeline.errors import Failure, FailureCode, Invalid, NotFound
from pipeline.services.reading import DocumentWindow, ReadingService
from pipeline.stages.window import WINDOW_BLOCKS, WINDOW_CHARS
from pipeline.types import Block, BlockKind, ExtractedDocument, GenerationRef, Page, Principal
from tests.contract.libraries import Passage
from tests.unit.services.house import ANA, BEN, TENANT, House


@pytest.fixture
def house() -> House:
    return House()


def reading(house: House) -> ReadingService:
    return ReadingService(house.units, house.policy)


def document(house: House, *texts: str, generation: int = 1, **published: object) -> uuid.UUID:
    """A published source of these paragraphs."""
    source_id = house.source()
    house.published(source_id, **published)  # type: ignore[arg-type]
    blocks = tuple(Block(BlockKind.PARAGRAPH, text) for text in texts)
    house.stores.documents.replace(
        GenerationRef(TENANT, source_id, generation), ExtractedDocument(blocks, (Page(1, 1.0, 1.0),))
    )
    return source_id


def walk(house: House, source_id: uuid.UUID, limit: int) -> list[list[str]]:
    """The texts of every window from the first block on."""
    windows: list[list[str]] = []
    at: int | None = 0
    while at is not None:
        part = reading(house).document(ANA, source_id, at, limit)
        windows.append([block.text for block in part.blocks])
        at = part.next_block
    return windows


@pytest.mark.parametrize(
    ("limit", "sizes"), [(50, [50, 50, 20]), (500, [50, 50, 20]), (60, [50, 50, 20]), (7, [7] * 17 + [1])]
)
def test_windows_walk_through_a_document_without_gap_or_overlap(house: House, limit: int, sizes: list[int]) -> None:
    texts = [f"block {number}" for number in range(120)]
    windows = walk(house, document(house, *texts), limit)
    assert [len(window) for window in windows] == sizes
    assert [text for window in windows for text in window] == texts
    assert max(sizes) <= WINDOW_BLOCKS


def test_a_window_ends_before_the_block_that_would_be_too_much(house: House) -> None:
    half = "x" * (WINDOW_CHARS // 2)
    source_id = document(house, half, half, "y", "z" * (WINDOW_CHARS + 1), "end")
    assert [list(map(len, window)) for window in walk(house, source_id, 50)] == [
        [len(half), len(half)],
        [1],
        [WINDOW_CHARS + 1],
        [3],
    ]


def test_the_last_window_says_so_also_when_it_is_full(house: House) -> None:
    source_id = document(house, *["x"] * WINDOW_BLOCKS)
    part = reading(house).document(ANA, source_id, 0, 50)
    assert (len(part.blocks), part.next_block) == (WINDOW_BLOCKS, None)
    assert reading(house).document(ANA, source_id, 50, 50) == DocumentWindow((), None, False, (), None, False)
    assert reading(house).document(ANA, source_id, 10**9, 1).blocks == ()


@pytest.mark.parametrize(("first", "limit"), [(-1, 10), (-10, 10), (0, 0), (0, -1), (3, 0)])
def test_a_window_that_is_none_is_refused(house: House, first: int, limit: int) -> None:
    source_id = document(house, *"abcdef")
    with pytest.raises(Invalid):
        reading(house).document(ANA, source_id, first, limit)


def test_a_window_tells_how_sure_its_text_is(house: House) -> None:
    warning = "Text recognition was unsure on page 1: check it against the original."
    unsure = document(house, "Ihe", low_confidence=True, warnings=(warning,))
    part = reading(house).document(ANA, unsure, 0, 50)
    assert (part.low_confidence, part.warnings) == (True, (warning,))
    sure = reading(house).document(ANA, document(house, "The"), 0, 50)
    assert (sure.low_confidence, sure.warnings) == (False, ())


def test_why_there_is_nothing_to_read(house: House) -> None:
    source_id = house.source()
    waiting = reading(house).document(ANA, source_id, 0, 50)
    assert (waiting.blocks, waiting.reason, waiting.retryable) == ((), "still being processed", True)
    house.failed(source_id, Failure(FailureCode.ENCRYPTED, "It needs a password."))
    refused = reading(house).document(ANA, source_id, 0, 50)
    assert (refused.blocks, refused.reason, refused.retryable) == ((), "encrypted", False)
    house.failed(source_id, Failure(FailureCode.TIMED_OUT, "It took too long."))
    assert reading(house).document(ANA, source_id, 0, 50).retryable


def test_an_older_generation_stays_readable_when_a_newer_one_failed(house: House) -> None:
    source_id = document(house, "still here")
    house.failed(source_id, Failure(FailureCode.CRASHED, "The parser died."))
    part = reading(house).document(ANA, source_id, 0, 50)
    assert ([block.text for block in part.blocks], part.reason) == (["still here"], None)


def test_pages_are_of_the_newest_attempt_until_one_is_published(house: House) -> None:
    source_id = house.source()
    assert reading(house).pages(ANA, source_id) == ()
    ref = GenerationRef(TENANT, source_id, 1)
    house.stores.documents.replace(ref, ExtractedDocument((), (Page(1, 2.0, 2.0),)))
    assert reading(house).pages(ANA, source_id) == (Page(1, 2.0, 2.0),)
    house.failed(source_id, Failure(FailureCode.NO_TEXT_LAYER, "It has no text layer."))
    house.stores.documents.replace(replace(ref, generation=2), ExtractedDocument((), (Page(1, 3.0, 3.0),)))
    assert reading(house).pages(ANA, source_id) == (Page(1, 3.0, 3.0),)
    house.published(source_id)
    assert reading(house).pages(ANA, source_id) == (Page(1, 2.0, 2.0),)


def test_chunks_are_read_in_parts_once_published(house: House) -> None:
    source_id = house.source()
    ref = GenerationRef(TENANT, source_id, 1)
    chunks = [Passage(text).chunk(ordinal) for ordinal, text in enumerate("abcde")]
    house.stores.knowledge.replace_chunks(ref, chunks)
    assert reading(house).chunks(ANA, source_id, 0, 2) == ((), None)
    house.published(source_id)
    assert reading(house).chunks(ANA, source_id, 0, 2) == (tuple(chunks[:2]), 2)
    assert reading(house).chunks(ANA, source_id, 2, 3) == (tuple(chunks[2:]), None)
    assert reading(house).chunks(ANA, source_id, 9, 3) == ((), None)


def test_what_is_not_one_s_own_is_not_there(house: House) -> None:
    source_id = document(house, "secret")
    calls: list[Callable[[Principal, uuid.UUID], object]] = [
        reading(house).source,
        lambda who, what: reading(house).document(who, what, 0, 50),
        reading(house).pages,
        lambda who, what: reading(house).chunks(who, what, 0, 50),
    ]
    strangers = [(BEN, source_id), (ANA, uuid.uuid4()), (replace(ANA, narrowed_to=("team:red",)), source_id)]
    for principal, asked in strangers:
        for call in calls:
            with pytest.raises(NotFound):
                call(principal, asked)
    assert reading(house).sources(BEN, 10, None).items == ()
    assert [one.source_id for one in reading(house).sources(ANA, 10, None).items] == [source_id]
