"""The lines of one page as rows in reading order.

Content-stream order is the reading order of almost every real page, right-to-left scripts included, so it is kept. One
case is mended: columns whose lines were drawn row by row, across the gutter. What else stands side by side in one row
stays one row.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from pipeline.stages.frame import Rect, to_frame, union
from pipeline.types import Box, Line, Page

# Share of the lower of two lines' heights that must be common for them to stand in one row.
_SAME_ROW = 0.5
# Columns drawn row by row: how many rows must show the gutter, and what part of the rows between them.
_GUTTER_ROWS = 4
_GUTTER_SHARE = 0.7
# A column of prose: mean characters and words of a line, and how much of the column's width its median line fills.
_PROSE_CHARS = 15
_PROSE_WORDS = 2.5
_PROSE_FILL = 0.6
_MAX_COLUMN_SPLITS = 4
# Stretched words of one line stay closer than this; cells of at least one of two rows do not.
_CELL_GAP = 2.0
# Two cells of neighbouring rows stand in one column when their edges agree to this part of the font height.
_ALIGNED = 0.5

_MARKER = re.compile(r"(?:[^\w\s(]|o|[\ue000-\uf8ff]|\(?(?:\d{1,3}|[A-Za-z]|[ivxIVX]{1,5})[.)]|\d+(?:\.\d+)*\.?)")
# A rule drawn with characters.
_RULE = re.compile(r"([_\-=–—*·.\u2500-\u257f])(?:\s?\1){4,}")
_RTL = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")


@dataclass(frozen=True, slots=True)
class Placed:
    """A line and where it stands in its reading frame, in points."""

    line: Line
    rect: Rect


@dataclass
class Row:
    """One row of text. ``rect`` is in the frame of its ``angle``, mirrored for right-to-left text.

    ``tabular`` says that its parts stand below or above those of a neighbour: cells, not words.
    """

    parts: list[Placed]
    rect: Rect
    size: float
    rtl: bool
    tabular: bool = False

    @property
    def first(self) -> Line:
        return self.parts[0].line

    @property
    def page(self) -> int:
        return self.parts[0].line.page

    @property
    def angle(self) -> int:
        return self.parts[0].line.angle

    @property
    def hidden(self) -> bool:
        return self.parts[0].line.hidden

    @cached_property
    def text(self) -> str:
        texts = [part.line.text for part in self.parts]
        if len(texts) == 2 and texts[0] == "o":
            texts[0] = "•"  # the bullet of word processors' second level, drawn with a letter
        return ("\t" if self.tabular else " ").join(texts)

    @cached_property
    def bold(self) -> bool:
        return all(part.line.bold for part in self.parts)

    @cached_property
    def monospace(self) -> bool:
        return all(part.line.monospace for part in self.parts)

    @cached_property
    def spread(self) -> bool:
        """Whether parts of the row stand further apart than stretched words of one line do."""
        if self.rtl:
            return len(self.parts) > 1
        gaps = (after.rect.u0 - before.rect.u1 for before, after in pairwise(self.parts))
        return max(gaps, default=0.0) >= _CELL_GAP * max(self.size, 1.0)

    @cached_property
    def boxes(self) -> tuple[Box, ...]:
        return tuple(part.line.box for part in self.parts)


def rows_of(page: Page, lines: Sequence[Line]) -> list[Row]:
    """The page's lines (all of this page, in stream order, none of a table) as rows in reading order."""
    placed = [
        Placed(line, to_frame(line.box, page.width, page.height, line.angle))
        for line in lines
        if _RULE.fullmatch(line.text) is None
    ]
    groups = _split_columns(_side_by_side(placed), 0)
    rows = [_row(group, page) for group in groups]
    _mark_cells(rows)
    return rows


def _side_by_side(placed: Sequence[Placed]) -> list[list[Placed]]:
    groups: list[list[Placed]] = []
    for item in placed:
        if groups and _beside(groups[-1], item):
            groups[-1].append(item)
        else:
            groups.append([item])
    return groups


def _beside(group: Sequence[Placed], item: Placed) -> bool:
    last = group[-1]
    if last.line.angle != item.line.angle or last.line.hidden != item.line.hidden:
        return False
    common = min(last.rect.v1, item.rect.v1) - max(last.rect.v0, item.rect.v0)
    if common < _SAME_ROW * min(last.rect.v1 - last.rect.v0, item.rect.v1 - item.rect.v0):
        return False
    return item.rect.u0 >= last.rect.u1 - item.line.size / 2 or item.rect.u1 <= group[0].rect.u0 + item.line.size / 2


def _split_columns(groups: list[list[Placed]], depth: int) -> list[list[Placed]]:
    """Rows that cross a gutter between columns of prose, reordered: each column's rows one after the other."""
    if depth >= _MAX_COLUMN_SPLITS or sum(len(group) > 1 for group in groups) < _GUTTER_ROWS:
        return groups
    gutter = _best_gutter(groups)
    if gutter is None:
        return groups
    ordered: list[list[Placed]] = []
    region: list[list[Placed]] = []
    for group in groups:
        if any(item.rect.u0 < gutter < item.rect.u1 for item in group):
            ordered += _columns(region, gutter, depth)
            ordered.append(group)
            region = []
        else:
            region.append(group)
    return ordered + _columns(region, gutter, depth)


def _best_gutter(groups: Sequence[Sequence[Placed]]) -> float | None:
    """The place most gaps between neighbours in a row have in common; None when fewer than four rows share one."""
    edges: list[tuple[float, int]] = []
    for group in groups:
        for left, right in pairwise(group):
            if right.rect.u0 > left.rect.u1:
                edges += [(left.rect.u1, 1), (right.rect.u0, -1)]
    edges.sort()
    best, depth, place = 0, 0, None
    for position, (edge, step) in enumerate(edges):
        depth += step
        if depth > best and position + 1 < len(edges):
            best, place = depth, (edge + edges[position + 1][0]) / 2
    return place if best >= _GUTTER_ROWS else None


def _columns(region: list[list[Placed]], gutter: float, depth: int) -> list[list[Placed]]:
    left = [[item for item in group if item.rect.u1 <= gutter] for group in region]
    right = [[item for item in group if item.rect.u1 > gutter] for group in region]
    both = [(a, b) for a, b in zip(left, right, strict=True) if a and b]
    if len(both) < _GUTTER_ROWS or len(both) < _GUTTER_SHARE * len(region):
        return region
    if not _prose([a for a, _ in both]) or not _prose([b for _, b in both]):
        return region
    sides = [[group for group in left if group], [group for group in right if group]]
    if _RTL.search(both[0][0][0].line.text):
        sides.reverse()
    return [group for side in sides for group in _split_columns(side, depth + 1)]


def _prose(column: Sequence[Sequence[Placed]]) -> bool:
    texts = [" ".join(item.line.text for item in group) for group in column]
    widths = sorted(group[-1].rect.u1 - group[0].rect.u0 for group in column)
    return (
        sum(map(len, texts)) >= _PROSE_CHARS * len(texts)
        and sum(len(text.split()) for text in texts) >= _PROSE_WORDS * len(texts)
        and widths[len(widths) // 2] >= _PROSE_FILL * widths[-1]
    )


def _row(group: list[Placed], page: Page) -> Row:
    rect = union([item.rect for item in group])
    longest = max(group, key=lambda item: len(item.line.text))
    rtl = _mostly_rtl(longest.line.text)
    if rtl:
        across = page.height if longest.line.angle in (90, 270) else page.width
        rect = Rect(across - rect.u1, rect.v0, across - rect.u0, rect.v1)
    return Row(group, rect, longest.line.size, rtl)


def _mostly_rtl(text: str) -> bool:
    return not text.isascii() and 2 * len(_RTL.findall(text)) > sum(map(str.isalpha, text))


def _mark_cells(rows: Sequence[Row]) -> None:
    for before, row in pairwise(rows):
        if _cells(before) and _cells(row) and (before.spread or row.spread) and _in_columns(before, row):
            before.tabular = row.tabular = True


def _cells(row: Row) -> bool:
    if len(row.parts) < 2:
        return False
    return len(row.parts) > 2 or _MARKER.fullmatch(row.first.text) is None


def _in_columns(before: Row, row: Row) -> bool:
    tolerance = _ALIGNED * max(row.size, 1.0)
    return any(
        abs(a.rect.u0 - b.rect.u0) <= tolerance or abs(a.rect.u1 - b.rect.u1) <= tolerance
        for a in before.parts[1:]
        for b in row.parts[1:]
    )
