"""What a query asks for: its text for the vector leg, its terms for the keyword leg."""

from __future__ import annotations

from dataclasses import dataclass

import regex

from pipeline import words
from pipeline.errors import Invalid
from pipeline.types import Json

# A question is a sentence; longer text is a document, and embedding models read only its first window.
MAX_QUERY_CHARS = 2_000

# Controls, line ends, lone surrogates and code points that mean nothing.
_NOT_TEXT = regex.compile(r"[\p{Cc}\p{Cs}\p{Co}\p{Cn}\s]+")


@dataclass(frozen=True, slots=True)
class Interpretation:
    """A query as both legs read it: one line of text, its terms, and those terms that look like identifiers."""

    text: str
    terms: tuple[str, ...]
    identifiers: tuple[str, ...]

    def as_json(self) -> dict[str, Json]:
        """What the answer of a search shows of it."""
        return {"text": self.text, "terms": list(self.terms), "identifiers": list(self.identifiers)}


def interpret(query: str) -> Interpretation:
    """Read a query.

    Raises :class:`~pipeline.errors.Invalid` when it is empty or has more than ``MAX_QUERY_CHARS`` code points.
    """
    if len(query) > MAX_QUERY_CHARS:
        raise Invalid(f"the query has {len(query):,} characters; at most {MAX_QUERY_CHARS:,} are allowed")
    text = _NOT_TEXT.sub(" ", query).strip()
    if not text:
        raise Invalid("the query is empty")
    terms = words.query_terms(text)
    return Interpretation(text, terms, tuple(term for term in terms if words.is_identifier(term)))
