"""What every DocumentStore holds: blocks in order, the page map, exactly what was stored last."""

from __future__ import annotations

import dataclasses
import uuid

import pytest

from pipeline.types import (
    Block,
    BlockKind,
    Box,
    Cell,
    ExtractedDocument,
    GenerationRef,
    Page,
    PageMethod,
    Table,
)
from tests.contract.stores import House

BLOCKS = tuple(Block(BlockKind.PARAGRAPH, text) for text in ("harbour", "quay", "pier", "mole"))


@pytest.fixture
def tenant(house: House) -> uuid.UUID:
    return house.tenant()


@pytest.fixture
def ref(house: House, tenant: uuid.UUID) -> GenerationRef:
    return house.source(tenant)


def test_every_field_comes_back(house: House, ref: GenerationRef) -> None:
    block = Block(
        BlockKind.TABLE,
        "a 'quoted' %s :x \\ 東京\n",
        level=2,
        page=3,
        boxes=(Box(3, 0.1, 0.2, 0.3, 0.4), Box(4, 0.0, 0.0, 1.0, 1.0)),
        table=Table(2, 2, (Cell(0, 0, "h", header=True), Cell(1, 0, "x", row_span=2, column_span=3)), part=2, parts=3),
        marker="3.",
        slide=1,
        sheet="S",
        cells="A1:B2",
        language="pt-BR",
        section=("attachment", "notes"),
        method=PageMethod.OCR,
        confidence=0.25,
        hidden=True,
    )
    pages = (
        Page(1, 612.0, 792.0, 90, PageMethod.MIXED, 0.5, 0.25, "it could not be read"),
        Page(2, 0.0, 0.0, method=PageMethod.SKIPPED),
    )
    with house.open(ref.tenant_id) as stores:
        stores.documents.replace(ref, ExtractedDocument((block, BLOCKS[0]), pages))
    with house.open(ref.tenant_id) as stores:
        assert stores.documents.blocks(ref) == (block, BLOCKS[0])
        assert stores.documents.pages(ref) == pages


def test_blocks_are_read_in_windows(house: House, ref: GenerationRef) -> None:
    with house.open(ref.tenant_id) as stores:
        stores.documents.replace(ref, ExtractedDocument(BLOCKS))
        assert stores.documents.blocks(ref) == BLOCKS
        assert stores.documents.blocks(ref, 1, 2) == BLOCKS[1:3]
        assert stores.documents.blocks(ref, 2) == BLOCKS[2:]
        assert stores.documents.blocks(ref, 3, 9) == BLOCKS[3:]
        assert stores.documents.blocks(ref, 9, 9) == ()
        assert stores.documents.blocks(ref, 0, 0) == ()
        assert stores.documents.pages(ref) == ()


def test_replacing_leaves_exactly_the_new_document(house: House, ref: GenerationRef) -> None:
    with house.open(ref.tenant_id) as stores:
        stores.documents.replace(ref, ExtractedDocument(BLOCKS, (Page(1, 1.0, 1.0), Page(2, 1.0, 1.0))))
        stores.documents.replace(ref, ExtractedDocument(BLOCKS[2:], (Page(2, 5.0, 5.0),)))
    with house.open(ref.tenant_id) as stores:
        assert stores.documents.blocks(ref) == BLOCKS[2:]
        assert stores.documents.pages(ref) == (Page(2, 5.0, 5.0),)
        stores.documents.replace(ref, ExtractedDocument(()))
        assert stores.documents.blocks(ref) == ()
        assert stores.documents.pages(ref) == ()


def test_a_document_is_of_one_generation_of_one_source_of_one_tenant(house: House, ref: GenerationRef) -> None:
    other = house.source(ref.tenant_id)
    with house.open(ref.tenant_id) as stores:
        stores.documents.replace(ref, ExtractedDocument(BLOCKS, (Page(1, 1.0, 1.0),)))
        for foreign in (other, dataclasses.replace(ref, generation=2)):
            assert stores.documents.blocks(foreign) == ()
            assert stores.documents.pages(foreign) == ()
        stores.documents.replace(other, ExtractedDocument(()))
        assert stores.documents.blocks(ref) == BLOCKS
    with house.open(house.tenant()) as stores:
        assert stores.documents.blocks(ref) == ()
