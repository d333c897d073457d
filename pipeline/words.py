"""What counts as a word: one reading of text for the index and for the query.

Index and query must fold alike or a search misses what stands on the page, so both sides of the keyword
index read text here. Nothing is stemmed: keyword search is for what was written, ``ERR-4021`` and not its kin.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import regex

# A longer term is not indexed whole; its parts are. 64 holds a sha256 in hex, and four bytes times 64 stays
# far below the 2,704 bytes that a row of a Postgres btree may have.
MAX_TERM_CHARS = 64
# More terms than this in one query only cost time: a question has ten, a pasted page has hundreds.
MAX_QUERY_TERMS = 32

# Scripts that write no spaces between words; searched by pairs of neighbouring characters.
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々〆〇"
_WORD = rf"[[\p{{L}}\p{{N}}_]--[{_UNSPACED}]][[\p{{L}}\p{{N}}\p{{M}}_]--[{_UNSPACED}]]*+"
# What holds an identifier together: ERR-4021, 1.2.3, a@b.c anywhere; 12/05/2026, INV/7, 10:30 and 1,234 beside digits.
_JOIN = r"(?:[-.@]|(?<=\d)[/:,](?=\d)|(?<=\d)/|/(?=\d))"
_TERM = regex.compile(
    rf"(?V1)(?P<unspaced>[[{_UNSPACED}]&&[\p{{L}}\p{{N}}]][{_UNSPACED}]*+)|{_WORD}(?:{_JOIN}{_WORD})*+"
)

_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe58\ufe63\uff0d", "-"))
# Soft hyphens, joiners and direction marks are invisible; words with and without them are one word.
_INVISIBLE = regex.compile(r"\p{Cf}+")
_LATIN_ACCENTS = regex.compile(r"(?<=\p{Latin})\p{Mn}+")
_IDENTIFIER = regex.compile(r"[\d\-_@]")

# Words that carry no signal in an English question, and what an apostrophe leaves of them. Single letters that
# also name things (vitamin D, T cells) are not among them.
_ENGLISH = (
    "a about after again all am an and any are aren as at be because been before being below between both but by "
    "can could couldn did didn do does doesn doing don down during each few for from further had hadn has hasn have "
    "haven having he her here hers him his how i if in into is isn it its just ll me more most my no nor not now of "
    "off on once only or other our out over own re s same she should shouldn so some such than that the their them "
    "then there these they this those through to too under until up ve very was wasn we were weren what when where "
    "which while who whom why will with won would wouldn you your"
)
_STOP_WORDS = frozenset(_ENGLISH.split())


def fold(text: str) -> str:
    """``text`` as words are compared: compatibility forms, case, dashes and Latin accents folded.

    Accents fold on Latin letters only (``café`` is ``cafe``); in other scripts a mark is part of the letter.
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    text = _INVISIBLE.sub("", text).translate(_DASHES)
    return unicodedata.normalize("NFC", _LATIN_ACCENTS.sub("", unicodedata.normalize("NFD", text)))


def terms(text: str) -> Iterator[str]:
    """Every term of ``text``, in order, repeated as often as it stands there.

    An identifier gives itself and its parts (``ERR-4021``: ``err-4021``, ``err``, ``4021``); a run of a
    script without spaces gives its pairs of characters, a single character itself.
    """
    for match in _TERM.finditer(fold(text)):
        term = match[0]
        if match["unspaced"]:
            yield from (term[at : at + 2] for at in range(max(1, len(term) - 1)))
        elif term.isalnum():
            if len(term) <= MAX_TERM_CHARS:
                yield term
        else:
            yield from (part for part in _with_parts(term) if len(part) <= MAX_TERM_CHARS and part.strip("-_"))


def query_terms(text: str) -> tuple[str, ...]:
    """The distinct terms a query searches by, in order; at most :data:`MAX_QUERY_TERMS`.

    Stop words go, unless nothing else is left. When there are too many terms, identifiers stay first.
    """
    every = tuple(dict.fromkeys(terms(text)))
    chosen = tuple(term for term in every if term not in _STOP_WORDS) or every
    if len(chosen) <= MAX_QUERY_TERMS:
        return chosen
    kept = frozenset(sorted(chosen, key=lambda term: not is_identifier(term))[:MAX_QUERY_TERMS])
    return tuple(term for term in chosen if term in kept)


def is_identifier(term: str) -> bool:
    """Whether a term looks like a code, number, address or hyphenated name rather than a word."""
    return _IDENTIFIER.search(term) is not None


def _with_parts(term: str) -> Iterator[str]:
    """The term, its segments between dots and signs, and their atoms between hyphens and underscores."""
    yield term
    segments = regex.split(r"[.@/:,]", term)
    for segment in segments:
        if len(segments) > 1:
            yield segment
        atoms = regex.split(r"[-_]", segment)
        if len(atoms) > 1:
            yield from atoms
