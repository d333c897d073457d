"""Where a word was divided at the end of a line, and where its hyphen is its own."""

from __future__ import annotations

import pytest

from pipeline.stages.hyphens import Joiner, without_mark


@pytest.mark.parametrize(
    ("before", "after", "joined"),
    [
        ("a hyphen\u00ad", "ated word", "a hyphenated word"),
        ("a co\u00ad", "operative one", "a co-operative one"),
        ("the self\u00ad", "made man", "the self-made man"),
        ("state-of\u00ad", "the-art", "state-of-the-art"),
        ("in UV\u00ad", "visible light", "in UV-visible light"),
        ("x\u00ad", "axis", "x-axis"),
        ("the Rhine\u00ad", "Main area", "the Rhine-Main area"),
        ("COVID\u00ad", "19 cases", "COVID-19 cases"),
        ("well-", "known", "well-known"),
        ("he said -", "and left", "he said - and left"),
        ("two", "words", "two words"),
        ("", "start", "start"),
        ("日本", "語の文", "日本語の文"),
        ("한국어", "문장", "한국어 문장"),
    ],
)
def test_joins(before: str, after: str, joined: str) -> None:
    assert Joiner([]).join(before, after) == joined


def test_words_of_the_document_decide() -> None:
    joiner = Joiner(
        ["a dual-encoder and an understanding", "of the dual\u00ad", "encoder, this under\u00ad", "standing"]
    )
    assert joiner.join("the dual\u00ad", "encoder") == "the dual-encoder"
    assert joiner.join("this under\u00ad", "standing") == "this understanding"


def test_two_words_of_the_document_are_a_compound() -> None:
    assert (
        Joiner(["the minority is speaking"]).join("the minority\u00ad", "speaking part") == "the minority-speaking part"
    )


def test_parts_of_divided_words_are_no_words() -> None:
    assert Joiner(["some mathe\u00ad", "matische text"]).join("mathe\u00ad", "matische") == "mathematische"


def test_a_mark_nothing_follows_is_a_hyphen() -> None:
    assert without_mark("cut o\u00ad") == "cut o-"
    assert without_mark("whole") == "whole"
