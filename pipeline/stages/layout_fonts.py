"""What the fonts of a document say: which size is its body, how far its lines stand apart, what looks like a heading."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.stages.layout_rows import Row

# A heading is at least this much larger than the body; bold text may be a heading down to the second ratio.
LARGER = 1.1
_BOLD_AT_LEAST = 0.92
_NUMBERED_LARGER = 1.04
# A size that carries this share of a longer document's characters is a second body, whatever its ratio.
_COMMON_SHARE, _LONG_DOCUMENT = 0.2, 3_000
_MAX_HEADING_CHARS, _MAX_BOLD_HEADING_CHARS = 200, 120
# Extra room above a bold line, against the usual distance of lines, that sets it apart.
_ISOLATED = 1.2
# Document mostly bold or mostly monospaced: then neither is evidence.
_HALF = 0.5
_DEFAULT_PITCH = 1.2

NUMBERED = re.compile(
    r"(?:(?P<number>\d{1,3}(?:\.\d{1,3})*)\.?|[IVX]{1,5}\.|[A-Z]\.(?:\d{1,3}\.?)*"
    r"|(?i:chapter|section|appendix|annex|part|article|kapitel|abschnitt|anhang|chapitre|annexe)\s+[\dIVXA-Z]+[.:]?)"
    r"\s+(?=[^\W\d_]|[\"“‘«(])"
)
_LEADERS = re.compile(r"(?:\.\s?){4,}|…|\t")
_SENTENCE_END = re.compile(r"[.;,]$")


@dataclass(frozen=True, slots=True)
class Fonts:
    """``body`` is the size most text has, in points; ``pitch`` the usual distance of its lines over their size."""

    body: float
    pitch: float
    common: frozenset[float]
    bold_body: bool
    monospace_body: bool

    def is_code(self, row: Row) -> bool:
        return row.monospace and not self.monospace_body

    def looks_like_heading(self, row: Row, before: Row | None, after: Row | None) -> bool:
        """By size, or by weight where the line stands apart or is numbered. ``before``, ``after``: same page or None."""
        text = row.text
        if len(text) > _MAX_HEADING_CHARS or row.hidden or row.tabular or self.is_code(row):
            return False
        if sum(map(str.isalpha, text)) < 2 or _LEADERS.search(text):
            return False
        ratio = row.size / self.body
        numbered = NUMBERED.match(text) is not None
        if ratio >= LARGER and rounded(row.size) not in self.common:
            return True
        if len(text) > _MAX_BOLD_HEADING_CHARS or (_SENTENCE_END.search(text) and not numbered):
            return False
        if not row.bold or self.bold_body or ratio < _BOLD_AT_LEAST:
            return numbered and ratio >= _NUMBERED_LARGER and self.stands_apart(row, before)
        return numbered or (self.stands_apart(row, before) and not self._goes_on(row, after))

    def stands_apart(self, row: Row, before: Row | None) -> bool:
        """Whether there is more room above the row than between lines of one paragraph."""
        if before is None or before.angle != row.angle:
            return True
        distance = row.rect.v1 - before.rect.v1
        return distance < 0 or distance > _ISOLATED * self.pitch * max(row.size, before.size)

    def _goes_on(self, row: Row, after: Row | None) -> bool:
        """A bold line directly above another bold line of a longer paragraph is emphasis when it is filled."""
        return (
            after is not None
            and after.bold
            and abs(after.size - row.size) < 0.3
            and len(row.text) > 60
            and not self.stands_apart(after, row)
        )


def rounded(size: float) -> float:
    """A font size in steps of half a point: what two renderings of one style differ by."""
    return round(size * 2) / 2


def measure(rows: Sequence[Row]) -> Fonts:
    """Evidence from the visible rows that are neither furniture nor table."""
    sizes: Counter[float] = Counter()
    bold = monospace = total = 0
    for row in rows:
        if row.hidden:
            continue
        length = len(row.text)
        total += length
        bold += length if row.bold else 0
        monospace += length if row.monospace else 0
        sizes[rounded(row.size)] += length
    body = sizes.most_common(1)[0][0] if sizes else 10.0
    common = {size for size, count in sizes.items() if total > _LONG_DOCUMENT and count >= _COMMON_SHARE * total}
    return Fonts(
        body=max(body, 0.5),
        pitch=_usual_pitch(rows, body),
        common=frozenset(common | {body}),
        bold_body=bold > _HALF * total,
        monospace_body=monospace > _HALF * total,
    )


def _usual_pitch(rows: Sequence[Row], body: float) -> float:
    pitches: Counter[float] = Counter()
    for before, row in zip(rows, rows[1:], strict=False):
        if before.page != row.page or before.angle != row.angle or rounded(row.size) != body:
            continue
        if rounded(before.size) != body or row.rect.u0 >= before.rect.u1 or before.rect.u0 >= row.rect.u1:
            continue
        pitch = (row.rect.v1 - before.rect.v1) / row.size
        if 0.8 <= pitch <= 2.6:
            pitches[round(pitch * 20) / 20] += 1
    return pitches.most_common(1)[0][0] if pitches else _DEFAULT_PITCH
