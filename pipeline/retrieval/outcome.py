"""What a search says when it found nothing, and the excerpt of what it found."""

from __future__ import annotations

import regex

from pipeline.types import Nothing, NothingReason

EXCERPT_CHARS = 2_000
_ELLIPSIS = " …"

MESSAGES: dict[NothingReason, str] = {
    NothingReason.NO_ACCESS: "You hold no subject to search under.",
    NothingReason.EMPTY_CORPUS: "There is nothing to search yet: no document you may read has been published.",
    NothingReason.NO_MATCH: "No passage matches the words and filters of this search.",
    NothingReason.BELOW_FLOOR: "Some passages were compared, but none is close enough to the question to be an answer.",
}


def nothing(reason: NothingReason) -> Nothing:
    """The outcome for a closed reason, with its sentence."""
    return Nothing(reason, MESSAGES[reason])


def excerpt(content: str, limit: int = EXCERPT_CHARS) -> str:
    """At most ``limit`` code points of ``content``, cut between words and marked with an ellipsis when cut.

    Text without a space in the last quarter is cut between characters as a reader counts them.
    """
    content = content.strip()
    if len(content) <= limit:
        return content
    room = limit - len(_ELLIPSIS)
    head = content[: room + 1]
    spaces = [match.start() for match in regex.finditer(r"\s+", head) if room * 3 // 4 <= match.start() <= room]
    if spaces:
        return head[: spaces[-1]].rstrip() + _ELLIPSIS
    ends = [match.end() for match in regex.finditer(r"\X", head) if 0 < match.end() <= room]
    return head[: ends[-1] if ends else room] + _ELLIPSIS
