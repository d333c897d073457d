"""Text as Markdown that reads back as that text: what could be taken for markup is escaped, the rest is left alone."""

from __future__ import annotations

import re

# Each alternative is text that CommonMark, or GitHub's tables and strikethrough, would take for markup.
_INLINE = re.compile(
    r"""
      \\(?=[!-/:-@\[-`{-~]|$)             # a backslash that would escape what follows, or break the line
    | `                                   # code
    | \*(?!(?<=\s\*)(?=\s))               # emphasis; not a star between spaces
    | (?<![^\W_])_|_(?![^\W_])            # emphasis; not an underscore inside a word
    | (?<=~)~|~(?=~)                      # strikethrough, fence
    | <(?=[A-Za-z/!?])                    # tag, comment, address
    | &(?=\#?\w{1,32};)                   # entity
    | \](?=[(\[:])                        # link, reference, definition
    """,
    re.VERBOSE | re.MULTILINE,
)
# Each of these at the start of a line begins a block of its own.
_BLOCK = re.compile(
    r"""
      \#(?=\#{0,5}(?:[ \t]|$))            # heading
    | >                                   # quotation
    | [-+](?=[ \t]|$)                     # list
    | (?<=\d)[.)](?=[ \t]|$)              # numbered list
    | =(?==*[ \t]*$)                      # underline of a heading
    | -(?=[-:| \t]*$)                     # underline, rule, row of hyphens below a table's header
    | [|:](?=[-:| \t]*$)
    | \*(?=[* \t]*$)|_(?=[_ \t]*$)        # rule
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"\d{1,9}(?=[.)](?:[ \t]|$))")


def inline(text: str) -> str:
    """One line of text, safe inside a paragraph, heading or cell."""
    return _INLINE.sub(r"\\\g<0>", text)


def lines(text: str) -> list[str]:
    """Text as the lines of one paragraph: safe at the start of each line, without empty lines and outer spaces."""
    return [_line(stripped) for line in text.split("\n") if (stripped := line.strip(" \t\r"))]


def _line(text: str) -> str:
    number = _NUMBER.match(text)
    at = number.end() if number else 0
    start = _BLOCK.match(text, at)
    if start is None or inline(text).startswith("\\"):
        return inline(text)
    return text[:at] + "\\" + text[at] + inline(text[at + 1 :])
