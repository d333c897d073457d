"""Cut one over-long text into pieces that fit, between sentences where possible and never inside a character."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator, Sequence

import regex

Cost = Callable[[str], int]

# No vocabulary is asked to stand for more than this many characters with one token: a tokenizer that gives up on
# a word calls a megabyte without spaces one token. English has four to five characters a token.
MAX_CHARS_PER_TOKEN = 16
# A piece this full is good enough; searching on for the last word costs more than it brings.
_FULL = 0.9
# A sentence end this far into a piece is worth the words behind it.
_SENTENCE_FROM = 0.5
# Tokens a character of English prose has; where a text is denser, the second piece knows.
_USUAL_DENSITY = 0.25
# How much more text than a piece is expected to hold is looked at to find its end.
_MARGIN = 1.25

_WORD_END = regex.compile(r"\s+|(?<=[。！？；：，、])(?=\S)")
_SENTENCE_END = regex.compile(r"[.!?…][\"'”’»)\]]*(?=\s)|[。！？][”’」』）]*")
_GRAPHEME = regex.compile(r"\X")


def cost_of(count_tokens: Callable[[str], int]) -> Cost:
    """Tokens of a text as the chunker charges them: as counted, and at least one for every 16 characters.

    Texts joined by white space cost at most the sum of their costs.
    """

    def cost(text: str) -> int:
        least = -(-(len(text) + 2) // MAX_CHARS_PER_TOKEN)
        return max(count_tokens(text), least)

    return cost


def cut(text: str, cost: Cost, budget: int) -> Iterator[str]:
    """Pieces of ``text``, in order and verbatim but for the white space between them, each within ``budget``.

    Never looks at more than a few pieces' worth of text at a time, so the time is linear in its length.
    """
    start, density = 0, _USUAL_DENSITY
    while start < len(text):
        window = text[start : start + min(int(budget / density * _MARGIN) + 1, budget * MAX_CHARS_PER_TOKEN)]
        tokens = cost(window)
        density = tokens / len(window)
        if start + len(window) < len(text) and tokens <= budget and len(window) < budget * MAX_CHARS_PER_TOKEN:
            continue  # sparser than what came before: look at more of it
        fits = tokens <= budget and start + len(window) == len(text)
        end = start + (len(window) if fits else _piece(window, cost, budget, density))
        if piece := text[start:end].strip():
            yield piece
        start = end


def _piece(window: str, cost: Cost, budget: int, density: float) -> int:
    """Characters in the next piece of a window that is too long: to the end of a sentence, a word or a character."""
    words = [match.start() for match in _WORD_END.finditer(window) if match.start()]
    if end := _largest(window, words, cost, budget, density):
        sentences = [match.end() for match in _SENTENCE_END.finditer(window, 0, end)]
        return sentences[-1] if sentences and sentences[-1] >= end * _SENTENCE_FROM else end
    graphemes = [match.end() for match in _GRAPHEME.finditer(window)]
    if graphemes and graphemes[-1] == len(window):
        graphemes.pop()  # the window may have cut it
    if end := _largest(window, graphemes, cost, budget, density):
        return end
    # A thousand marks on one letter are no character any more; then code points must do.
    return _largest(window, range(1, len(window)), cost, budget, density) or 1


def _largest(window: str, ends: Sequence[int], cost: Cost, budget: int, density: float) -> int:
    """About the largest of ``ends`` up to which the window fits the budget; 0 when none does.

    Guesses by the density of tokens seen so far, and bisects when guessing does not get there.
    """
    low, high, tries = -1, len(ends), 0
    while high - low > 1:
        guess = bisect.bisect_right(ends, budget / density) - 1 if tries < 4 else (low + high) // 2
        middle = min(max(guess, low + 1), high - 1)
        tries += 1
        here = cost(window[: ends[middle]])
        density = here / ends[middle]
        if here > budget:
            high = middle
        else:
            low = middle
            if here >= budget * _FULL:
                break
    return ends[low] if low >= 0 else 0
