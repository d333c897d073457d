"""What the fonts of a document say: its body size, how far its lines stand apart, what looks like a heading."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from pipeline.stages.layout_rows import Row

# A heading is at least this much larger than the body; bold text may be a heading down to the second ratio.
LARGER = 1.1
_BOLD_AT_LEAST = 0.92
# A line with a number of two or more parts may be a heading without being bold, when it is this short.
_MAX_PLAIN_CHARS = 80
# A size that carries this share of a longer document's characters is a second body, whatever its ratio.
_COMMON_SHARE, _LONG_DOCUMENT = 0.2, 3_000
_MAX_HEADING_CHARS, _MAX_BOLD_HEADING_CHARS = 200, 120
# Extra room above a bold line, against the usual distance of lines, that sets it apart.
_ISOLATED = 1.2
# A size below this many times the body's is one of prose when paragraphs are set in it: at least so many rows of so
# many characters, in runs of so many.
_DISPLAY, _PROSE_ROWS, _PROSE_ROW_CHARS, _PROSE_RUN = 1.5, 4, 45, 2
# Document mostly bold or mostly monospaced: then neither is evidence.
_HALF = 0.5
_DEFAULT_PITCH = 1.2
# Characters that must agree on a page's own distance of lines.
_ENOUGH_TEXT = 300

NUMBERED = re.compile(
    r"(?:(?P<number>\d{1,3}(?:\.\d{1,3})*)\.?|[IVX]{1,5}\.|[A-Z]\.(?:\d{1,3}\.?)*"
    r"|(?i:chapter|section|appendix|annex|part|article|kapitel|abschnitt|anhang|chapitre|annexe)\s+[\dIVXA-Z]+[.:]?)"
    r"\s+(?=[^\W\d_]|[\"“‘«(])"
)
_LEADERS = re.compile(r"(?:\.\s?){4,}|…|\t")
_SENTENCE_END = re.compile(r"[.;,]$")


@dataclass(frozen=True, slots=True)
class Fonts:
    """``body`` is the size most text has, in points; ``pitch`` the usual distance of its lines over their size.

    ``page_pitch`` holds the pages whose own text says another.
    """

    body: float
    pitch: float
    common: frozenset[float]
    bold_body: bool
    monospace_body: bool
    page_pitch: dict[int, float] = field(default_factory=dict)

    def pitch_on(self, page: int) -> float:
        return self.page_pitch.get(page, self.pitch)

    def is_code(self, row: Row) -> bool:
        return row.monospace and not self.monospace_body

    def looks_like_heading(self, row: Row, before: Row | None, after: Row | None) -> bool:
        """By size, or by weight where the row stands apart or is numbered; its neighbours are on the same page."""
        text = row.text
        if (
            len(text) > _MAX_HEADING_CHARS
            or row.hidden
            or row.tabular
            or (len(row.parts) > 2 and row.spread)
            or self.is_code(row)
        ):
            return False
        if sum(map(str.isalpha, text)) < 2 or _LEADERS.search(text):
            return False
        ratio = row.size / self.body
        match = NUMBERED.match(text)
        numbered = match is not None
        if ratio >= LARGER and rounded(row.size) not in self.common:
            return True
        if len(text) > _MAX_BOLD_HEADING_CHARS or (_SENTENCE_END.search(text) and not numbered):
            return False
        if not row.bold or self.bold_body or ratio < _BOLD_AT_LEAST:
            deep = match is not None and "." in (match["number"] or "")
            return deep and ratio >= _BOLD_AT_LEAST and len(text) <= _MAX_PLAIN_CHARS and self.stands_apart(row, before)
        return numbered or (self.stands_apart(row, before) and not self._goes_on(row, after))

    def stands_out(self, row: Row) -> bool:
        """Whether the row is larger than the body, or bold where the body is not."""
        return row.size >= LARGER * self.body or (row.bold and not self.bold_body)

    def stands_apart(self, row: Row, before: Row | None) -> bool:
        """Whether there is more room above the row than between lines of one paragraph."""
        if before is None or before.angle != row.angle:
            return True
        distance = row.rect.v1 - before.rect.v1
        return distance < 0 or distance > _ISOLATED * self.pitch_on(row.page) * max(row.size, before.size)

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
    common |= {size for size in _sizes_of_prose(rows) if size < _DISPLAY * body}
    pitch, page_pitch = _pitches(rows)
    return Fonts(
        body=max(body, 0.5),
        pitch=pitch,
        common=frozenset(common | {body}),
        bold_body=bold > _HALF * total,
        monospace_body=monospace > _HALF * total,
        page_pitch=page_pitch,
    )


def _sizes_of_prose(rows: Sequence[Row]) -> set[float]:
    """Sizes in which whole paragraphs are set: rows long enough, enough of them one below the other."""
    counts: Counter[float] = Counter()
    for _, group in groupby(rows, key=lambda row: (row.page, rounded(row.size), row.bold)):
        run = [row for row in group if len(row.text) >= _PROSE_ROW_CHARS]
        if len(run) >= _PROSE_RUN:
            counts[rounded(run[0].size)] += len(run)
    return {size for size, count in counts.items() if count >= _PROSE_ROWS}


def _pitches(rows: Sequence[Row]) -> tuple[float, dict[int, float]]:
    """The usual pitch of the document and of every page with enough text; long rows count for more than cells."""
    document: Counter[float] = Counter()
    pages: defaultdict[int, Counter[float]] = defaultdict(Counter)
    for before, row in pairwise(rows):
        if before.page != row.page or before.angle != row.angle or rounded(before.size) != rounded(row.size):
            continue
        if row.tabular or row.rect.u0 >= before.rect.u1 or before.rect.u0 >= row.rect.u1:
            continue
        pitch = (row.rect.v1 - before.rect.v1) / max(row.size, 0.1)
        if 0.8 <= pitch <= 2.6:
            step = round(pitch * 20) / 20
            weight = min(len(before.text), len(row.text))
            document[step] += weight
            pages[row.page][step] += weight
    usual = {page: counts.most_common(1)[0] for page, counts in pages.items()}
    return (
        document.most_common(1)[0][0] if document else _DEFAULT_PITCH,
        {page: pitch for page, (pitch, weight) in usual.items() if weight >= _ENOUGH_TEXT},
    )
