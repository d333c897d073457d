"""Words are read alike for the index and for the query."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline import words
from pipeline.stages import keywords
from pipeline.types import TermCount


def terms(text: str) -> list[str]:
    return list(words.terms(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Renewals, renewal", ["renewals", "renewal"]),
        ("ERR-4021", ["err-4021", "err", "4021"]),
        ("Q3-2026", ["q3-2026", "q3", "2026"]),
        ("foo_bar.baz", ["foo_bar.baz", "foo_bar", "foo", "bar", "baz"]),
        ("version 1.2.3.", ["version", "1.2.3", "1", "2", "3"]),
        ("john.doe@example.com", ["john.doe@example.com", "john", "doe", "example", "com"]),
        ("12/05/2026 10:30 1,234", ["12/05/2026", "12", "05", "2026", "10:30", "10", "30", "1,234", "1", "234"]),
        ("and/or TCP/IP", ["and", "or", "tcp", "ip"]),
        ("don't __init__ _ - -- ...", ["don", "t", "__init__", "init"]),
        ("東京都庁 水 ｱｲ iPhone手机", ["東京", "京都", "都庁", "水", "アイ", "iphone", "手机"]),
        ("한국어 ไทย", ["한국", "국어", "ไท", "ทย"]),
        ("שלום عالم हिन्दी", ["שלום", "عالم", "हिन्दी"]),
        ("", []),
        ("!? …", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("1\u201124 hours", "1-24 HOURS"),
        ("1\u201024", "1-24"),
        ("1–24", "1-24"),
        ("soft\u00adhyphen zero\u200bwidth", "softhyphen zerowidth"),
        ("Ångström café", "angstrom CAFE\u0301"),
        ("ﬁrst ＡＢＣ１２３", "first abc123"),
        ("STRASSE", "straße"),
        ("İstanbul", "istanbul"),
    ],
)
def test_spellings_that_are_one_word(written: str, asked: str) -> None:
    assert terms(written) == terms(asked)


def test_accents_outside_latin_are_letters() -> None:
    assert terms("й") != terms("и")
    assert terms("が") != terms("か")


def test_terms_of_counts() -> None:
    counted = keywords.terms_of("The pump. the PUMP-2")
    assert counted == (TermCount("the", 2), TermCount("pump", 2), TermCount("pump-2", 1), TermCount("2", 1))
    assert sum(term.count for term in counted) == len(terms("The pump. the PUMP-2"))
    assert keywords.terms_of("…") == ()


def test_a_word_too_long_to_index_costs_only_itself() -> None:
    assert terms("before " + "x" * 65 + " after " + "y" * 64) == ["before", "after", "y" * 64]
    assert terms("ab-" + "z" * 70 + "-cd") == ["ab", "cd"]


@pytest.mark.parametrize(
    "text", ["a" * 10**6, "a-" * 200_000, "水" * 300_000, "1," * 200_000, "a\u0301" * 300_000, "-" * 10**6]
)
def test_time_is_linear(text: str) -> None:
    started = time.process_time()
    keywords.terms_of(text)
    assert time.process_time() - started < 5


@given(st.text())
def test_every_term_is_short_folded_and_found_by_itself(text: str) -> None:
    for term in terms(text):
        assert 0 < len(term) <= words.MAX_TERM_CHARS
        assert term.strip("-_.@/:,")
        assert term in terms(term)


def test_stop_words_leave_the_query_unless_nothing_else_is_left() -> None:
    assert words.query_terms("Was the site down?") == ("site",)
    assert words.query_terms("who is the") == ("who", "is", "the")
    assert terms("the site") == ["the", "site"]


def test_query_terms_are_distinct_and_bounded_identifiers_first() -> None:
    assert words.query_terms("pump PUMP Pump") == ("pump",)
    many = words.query_terms(" ".join(f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(80)) + " ERR-4021")
    assert len(many) == words.MAX_QUERY_TERMS
    assert many[-3:] == ("err-4021", "err", "4021") or {"err-4021", "4021"} <= set(many)


@pytest.mark.parametrize(
    ("term", "is_one"), [("err-4021", True), ("2026", True), ("a_b", True), ("pump", False), ("水道", False)]
)
def test_identifiers(term: str, is_one: bool) -> None:
    assert words.is_identifier(term) is is_one
