"""What a query asks for, and what is said when nothing answers it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import Invalid
from pipeline.retrieval import interpret, outcome
from pipeline.types import NothingReason


def test_a_question_is_read_for_both_legs() -> None:
    read = interpret.interpret("  What does\x00 error\nERR-4021 mean? ")
    assert read.text == "What does error ERR-4021 mean?"
    assert read.terms == ("error", "err-4021", "err", "4021", "mean")
    assert read.identifiers == ("err-4021", "4021")
    assert read.as_json() == {"text": read.text, "terms": list(read.terms), "identifiers": list(read.identifiers)}


@pytest.mark.parametrize("query", ["", " \n\t", "\x00\x01", "\ud800"])
def test_an_empty_query_is_invalid(query: str) -> None:
    with pytest.raises(Invalid, match="empty"):
        interpret.interpret(query)


def test_a_query_without_a_word_still_has_a_text() -> None:
    assert interpret.interpret("???").terms == ()


def test_the_length_is_bounded_and_both_numbers_named() -> None:
    assert interpret.interpret("a" * 2_000).text == "a" * 2_000
    with pytest.raises(Invalid, match=r"2,001.*2,000"):
        interpret.interpret("a" * 2_001)


@given(st.text(min_size=1, max_size=200))
def test_any_text_is_read_or_refused(query: str) -> None:
    try:
        read = interpret.interpret(query)
    except Invalid:
        return
    read.text.encode()
    assert "\n" not in read.text


def test_every_reason_has_its_own_sentence() -> None:
    assert set(outcome.MESSAGES) == set(NothingReason)
    assert len(set(outcome.MESSAGES.values())) == len(NothingReason)
    assert outcome.nothing(NothingReason.NO_MATCH).message == outcome.MESSAGES[NothingReason.NO_MATCH]


def test_an_excerpt_is_cut_between_words_with_an_ellipsis() -> None:
    assert outcome.excerpt(" whole ") == "whole"
    assert outcome.excerpt("alpha beta gamma delta", 18) == "alpha beta gamma …"
    assert outcome.excerpt("alpha beta gamma delta", 22) == "alpha beta gamma delta"
    assert len(outcome.excerpt("word " * 1000)) <= outcome.EXCERPT_CHARS


def test_an_excerpt_of_unbroken_text_keeps_characters_whole() -> None:
    assert outcome.excerpt("水" * 30, 12) == "水" * 10 + " …"
    cut = outcome.excerpt("e\u0301" * 30, 13)
    assert cut == "e\u0301" * 5 + " …"


@given(st.text(max_size=300), st.integers(10, 100))
def test_an_excerpt_is_never_longer_than_asked(text: str, limit: int) -> None:
    cut = outcome.excerpt(text, limit)
    assert len(cut) <= limit
    assert text.strip().startswith(cut.removesuffix(" …").rstrip())
