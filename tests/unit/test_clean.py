"""What cleaning takes out of text, and what it must leave alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.stages.clean import clean_text


@pytest.mark.parametrize(
    ("dirty", "clean"),
    [
        ("12\x0034\x0e5", "12345"),
        ("lone \ud800surrogate\udc00", "lone surrogate"),
        ("pair \ud83d\ude00", "pair \U0001f600"),
        ("file\u202egpj.exe\u2066", "filegpj.exe"),
        ("co\u00adoperate\ufeff", "cooperate"),
        ("a\r\nb\rc\x0bd\u2028e\x85f", "a\nb\nc\nd\ne\nf"),
        ("nonchar\ufffe\uffff\ufdd0", "nonchar"),
        ("c1\x9f \x7f", "c1 "),
    ],
)
def test_takes_out_what_no_store_accepts(dirty: str, clean: str) -> None:
    assert clean_text(dirty) == clean


@pytest.mark.parametrize("text", ["tab\tand\nnewline", "می\u200cخواهم", "abc\u200f", "naïve ﬁ 日本語", "plain", ""])
def test_leaves_meaningful_characters(text: str) -> None:
    assert clean_text(text) == text


@given(st.text(alphabet=st.characters(codec=None)))
def test_result_always_encodes_and_is_stable(text: str) -> None:
    cleaned = clean_text(text)
    assert b"\x00" not in cleaned.encode("utf-8")
    assert clean_text(cleaned) == cleaned
