"""The gate every zip passes before a parser opens it."""

from __future__ import annotations

import io
import time
import tracemalloc

import pytest

from pipeline.engines.zipgate import InflateLimits, inspect
from pipeline.errors import Failure, FailureCode
from tests.inputs import word, zips

LIMITS = InflateLimits(max_bytes=512 * 1024 * 1024, max_ratio=200)
MEBIBYTE = 1024 * 1024


def gate(data: bytes, limits: InflateLimits = LIMITS) -> Failure | None:
    return inspect(io.BytesIO(data), limits)


def refused(data: bytes, limits: InflateLimits = LIMITS) -> Failure:
    found = gate(data, limits)
    assert found is not None
    return found


def test_an_honest_document_passes() -> None:
    assert gate(word.document(word.paragraph("x"))) is None
    assert gate(zips.archive({"a.xml": b"<a/>", "b": bytes(1000)}, stored=True)) is None


def test_a_bomb_is_refused_by_its_ratio_quickly_and_without_memory() -> None:
    data = word.bomb(30)
    assert len(data) < 200_000
    tracemalloc.start()
    began = time.process_time()
    found = refused(data)
    took = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.code is FailureCode.TOO_LARGE
    assert "the limit is 200 times" in found.detail
    assert took < 1
    assert peak < 20 * MEBIBYTE


def test_a_high_ratio_within_the_grace_is_harmless() -> None:
    assert gate(zips.archive({"a.bin": bytes(9 * MEBIBYTE)})) is None
    assert refused(zips.archive({"a.bin": bytes(11 * MEBIBYTE)})).code is FailureCode.TOO_LARGE


def test_the_total_is_limited_and_both_numbers_are_named() -> None:
    data = zips.archive({"a.bin": bytes(range(256)) * 40, "b.bin": bytes(range(256)) * 40}, stored=True)
    found = refused(data, InflateLimits(max_bytes=20_000, max_ratio=200))
    assert found.code is FailureCode.TOO_LARGE
    assert "20,480" in found.detail
    assert "20,000" in found.detail


@pytest.mark.parametrize("declared", [10, 11 * MEBIBYTE - 5])
def test_a_size_that_lies_is_found_while_inflating(declared: int) -> None:
    honest = zips.archive({"word/document.xml": b"<a>" + bytes(11 * MEBIBYTE) + b"</a>"})
    lying = zips.with_declared_size(honest, "word/document.xml", declared)
    assert refused(lying).code in (FailureCode.MALFORMED, FailureCode.TOO_LARGE)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be", "utf-16"])
@pytest.mark.parametrize("declaration", ['<!DOCTYPE a [<!ENTITY b "c">]>', '<!ENTITY b "c">'])
def test_a_document_type_is_malformed_in_any_encoding(declaration: str, encoding: str) -> None:
    part = f"<?xml version='1.0'?>{declaration}<a/>".encode(encoding)
    assert refused(zips.archive({"a.xml": part})).code is FailureCode.MALFORMED


def test_a_document_type_hides_neither_behind_a_long_comment_nor_a_block_boundary() -> None:
    for padding in range(262_144 - 20, 262_144):
        part = b"<?xml version='1.0'?><!--".ljust(padding, b" ") + b"--><!DOCTYPE a><a/>"
        assert refused(zips.archive({"part": part})).code is FailureCode.MALFORMED


def test_entities_within_entities_are_malformed() -> None:
    assert refused(word.laughs()).code is FailureCode.MALFORMED


def test_text_that_only_speaks_of_document_types_passes() -> None:
    assert gate(word.document(word.paragraph("&lt;!DOCTYPE html&gt;"))) is None
    assert gate(zips.archive({"page.txt": b"about <!DOCTYPE html>"})) is None


def test_encrypted_members_are_encrypted() -> None:
    assert refused(zips.encrypted(word.document(""), "word/styles.xml")).code is FailureCode.ENCRYPTED


def test_members_that_share_bytes_are_malformed() -> None:
    data = zips.archive({"a": b"first" * 100, "b": b"second" * 100})
    assert refused(zips.overlapping(data, "b", "a")).code is FailureCode.MALFORMED


def test_too_many_members() -> None:
    assert gate(zips.archive({str(number): b"" for number in range(5_000)})) is None
    assert refused(zips.archive({str(number): b"" for number in range(5_001)})).code is FailureCode.TOO_LARGE


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: data + b"x", lambda _: b"PK\x03\x04"]
)
def test_damage_is_malformed(damage: object) -> None:
    assert callable(damage)
    assert refused(damage(word.document(""))).code is FailureCode.MALFORMED


def test_flipped_bytes_never_raise() -> None:
    data = bytearray(zips.archive({"[Content_Types].xml": b"<a/>" * 50, "b.bin": bytes(500)}))
    for at in range(len(data)):
        changed = data.copy()
        changed[at] ^= 0xFF
        gate(bytes(changed))
