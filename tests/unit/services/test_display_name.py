"""A name fit to show is short, honest and never a path."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.services.files import NAME_BYTES, display_name


@pytest.mark.parametrize(
    ("given_name", "shown"),
    [
        ("report.pdf", "report.pdf"),
        ("con.pdf", "con.pdf"),
        ("Übersicht – “2026” 東京 👍.pdf", "Übersicht – “2026” 東京 👍.pdf"),
        # NFD as macOS sends it.
        ("U\u0308bersicht.pdf", "Übersicht.pdf"),
        ("../../etc/passwd", "_.._etc_passwd"),
        ("C:\\Users\\ana\\report.pdf", "C:_Users_ana_report.pdf"),
        ("a\x00b\r\nc\x7f\x85.txt", "abc.txt"),
        # Shown as «exe.pdf» by anything that honours the override.
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("\u2066a\u2069\u200f\u061c.txt", "a.txt"),
        ("line\u2028end\u2029.txt", "lineend.txt"),
        ("half \ud800 pair.txt", "half  pair.txt"),
        ("\ue000private.txt", "private.txt"),
        # What stood between a letter and its accent goes, and the two are one letter.
        ("cafe\u200d\u0301.txt", "café.txt"),
        ("  . .hidden. ", "hidden"),
        ("\u00a0\u3000name\u2003.", "name"),
        ("", "unnamed"),
        ("...", "unnamed"),
        ("\u3000", "unnamed"),
        ("\x00\u202e", "unnamed"),
        ("/", "_"),
    ],
)
def test_names(given_name: str, shown: str) -> None:
    assert display_name(given_name) == shown


def test_a_long_name_is_cut_and_keeps_its_ending() -> None:
    assert display_name("a" * 300 + ".pdf") == "a" * 196 + ".pdf"
    cut = display_name("東" * 100 + ".tar.gz")
    assert cut == "東" * 65 + ".gz"
    assert len(cut.encode()) <= NAME_BYTES
    assert display_name("a" * 300 + "." + "b" * 100) == "a" * 200
    assert display_name("a" * 190 + " " * 50 + "b.pdf") == "a" * 190 + ".pdf"
    assert display_name("." + "é" * 150) == "é" * 100


def test_a_huge_name_is_cut_at_once() -> None:
    began = time.monotonic()
    display_name("a" + " ." * 50_000 + "b" * 100_000)
    assert time.monotonic() - began < 1


@given(st.text(st.characters(), max_size=300))
def test_whatever_comes_is_fit_to_show_and_stays_as_it_is(name: str) -> None:
    shown = display_name(name)
    assert shown
    assert len(shown.encode()) <= NAME_BYTES
    assert unicodedata.is_normalized("NFC", shown)
    assert not set(shown) & set("/\\\x00\u202e\u2066\u2028")
    assert display_name(shown) == shown
