"""Text that every store, encoder and reader accepts: what must never leave an extraction is taken out here."""

from __future__ import annotations

import re

# Line ends of every platform, and the separators that mean one.
_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")

# C0 and C1 controls (tab and newline stay), DEL, soft hyphen, bidirectional embeddings, overrides and isolates,
# the byte-order mark, and the noncharacters that fonts without a map give. Joiners and LRM/RLM stay: Persian,
# Indic and mixed-direction text mean something by them.
_UNWANTED = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u202a-\u202e\u2066-\u2069\ufeff\ufdd0-\ufdef\ufffe\uffff]"
)

_SURROGATES = re.compile("[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """``text`` without NUL, controls, bidirectional overrides, noncharacters, soft hyphens and lone surrogates.

    Line ends become ``\\n``; a surrogate pair becomes the character it stands for. The result encodes to
    UTF-8 and is accepted by a Postgres ``text`` column.
    """
    if text.isascii() and text.isprintable():
        return text
    if _SURROGATES.search(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return _UNWANTED.sub("", _LINE_ENDS.sub("\n", text))
