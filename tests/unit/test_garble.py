"""Sound text of many kinds scores low; text of broken font maps scores high."""

from __future__ import annotations

import pytest

from pipeline.stages.garble import DAMAGED, GARBLED, garble_score


def score(text: str) -> float:
    return garble_score(text, text.split("\n"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "12",
        "A plain sentence, with (brackets), quotes “like these” and 3.5 % of numbers.",
        "Chapter 1 ................................ 3\nChapter 2 ................................ 17",
        "2004 34.7 36.2 44.5 51.3 166.7\n2005 58.1 63.4 61.6 55.2 238.4\n-1,000 | +2,000 | 0.0001",
        "for (i = 0; i < n; i++) { a[i] = b[i] * c; } // sum += a[i] && x != y",
        "\uf0b7 first\n\uf0b7 second\n\uf0b7 third",
        "שלום עולם, זה טקסט בעברית עם נקודות",
        "これは日本語の文章です。単語の間に空白はありません。" * 8,
        "ภาษาไทยเขียนติดกันโดยไม่มีช่องว่างระหว่างคำ" * 6,
        "∀x ∈ R: x² ≥ 0 and the integral of f is F(b) - F(a), so the theorem holds for every n",
        "हिन्दी में मात्राएँ होती हैं और वे अक्षर नहीं हैं",
    ],
)
def test_sound_text(text: str) -> None:
    assert score(text) < DAMAGED


@pytest.mark.parametrize(
    "text",
    [
        "\ue041\ue042\ue043 \ue044\ue045 \ue046\ue047\ue048",
        "\ufffd\ufffd\ufffd\ufffd is \ufffd\ufffd\ufffd\ufffd\ufffd",
        "\x01\x02\x03\x04 \x05\x06 \x07\x08\x0e\x0f",
        "".join(chr(code) for code in range(0x21, 0x30)) * 4,
        "n o w e v e r y l e t t e r s t a n d s a l o n e " * 6,
        "wordswithoutanyspacebetweenthembecausethefontlostit" * 4,
    ],
)
def test_garbled_text(text: str) -> None:
    assert score(text) >= GARBLED


def test_the_score_grows_with_what_is_lost() -> None:
    sound = "a sentence of letters that are all known " * 4
    few, more = sound + "\ufffd" * 8, sound + "\ufffd" * 60
    assert score(sound) < DAMAGED <= score(few) < GARBLED <= score(more) <= 1
