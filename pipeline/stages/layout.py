"""Rows of a whole document to blocks: headings with levels, paragraphs, list items, captions, code, furniture."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipeline.stages import hyphens, layout_fonts, layout_lists
from pipeline.stages.layout_furniture import furniture
from pipeline.stages.layout_rows import Row
from pipeline.types import Block, BlockKind, Box, Page

# All lengths in font heights unless said otherwise.
_SAME_SIZE = 0.12
_PARAGRAPH_GAP = 1.3
_INDENT = 0.8
_LEAST_INDENT_AGREEMENT = 0.5
_MAX_HEADING_ROWS, _MAX_HEADING_CHARS = 4, 250
_MAX_CAPTION_CHARS = 600
# How far back the paragraph that a page's first row continues may lie: footnotes and captions stand between.
_LOOK_BACK = 6
# Neighbours, in rows, that tell where a column's right edge is.
_EDGE_NEIGHBOURS = 6
# Part of the column's width a row must end short of the edge for the break to be meant.
_SHORT = 0.1

_CAPTION = re.compile(
    r"(?:figure|fig\.|table|tab\.|exhibit|chart|plate|abbildung|abb\.|tabelle|tableau|figura|tabla|tabella)"
    r"\s*[A-Z]?[\dIVX]+(?:[.\-]\d+)*[a-z]?(?:\s*(?:[.:|–—]|$)|\s+-\s)",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?:;…。！？][\"'”’»)\]]*$")
_LEADERS = re.compile(r"(?:\. ?){4,}")


@dataclass
class Draft:
    """A block in the making: its rows in order and, where a row began a new line on purpose, its position."""

    kind: BlockKind
    rows: list[Row]
    marker: layout_lists.Marker | None = None
    level: int = 0
    breaks: set[int] = field(default_factory=set)

    @property
    def last(self) -> Row:
        return self.rows[-1]


def lay_out(rows: Sequence[Row], pages: Mapping[int, Page]) -> list[tuple[int, Block]]:
    """Blocks, each with the position in ``rows`` of its first row, in the order of their first rows."""
    marked = furniture(rows, pages)
    body = [row for position, row in enumerate(rows) if position not in marked]
    fonts = layout_fonts.measure(body)
    builder = _Builder(fonts)
    drafts: list[tuple[int, Draft]] = []
    for position, row in enumerate(rows):
        if (kind := marked.get(position)) is not None:
            drafts.append((position, Draft(kind, [row])))
            continue
        opened = builder.take(row, _neighbour(rows, position, -1, marked), _neighbour(rows, position, 1, marked))
        if opened is not None:
            drafts.append((position, opened))
    _demote(drafts)
    _set_levels([draft for _, draft in drafts if draft.kind is BlockKind.HEADING])
    joiner = hyphens.Joiner([row.text for row in rows])
    return [(position, _block(draft, joiner)) for position, draft in drafts]


def _neighbour(rows: Sequence[Row], position: int, step: int, marked: Mapping[int, BlockKind]) -> Row | None:
    """The next row that is no furniture, on the same page."""
    page = rows[position].page
    position += step
    while 0 <= position < len(rows) and position in marked:
        position += step
    return rows[position] if 0 <= position < len(rows) and rows[position].page == page else None


class _Builder:
    """Takes rows in reading order and decides for each whether it goes on with a draft or opens one."""

    def __init__(self, fonts: layout_fonts.Fonts) -> None:
        self._fonts = fonts
        self._drafts: list[Draft] = []
        # The draft that took the last row.
        self._open: Draft | None = None
        # Left edges of the list items that are open, outermost first.
        self._indents: list[float] = []

    def take(self, row: Row, before: Row | None, after: Row | None) -> Draft | None:
        """The draft that ``row`` opens; None when it went on with an earlier one."""
        kind, marker = self._kind(row, before, after)
        goes_on = None if marker is not None else self._going_on(kind, row, after)
        if goes_on is not None:
            goes_on.rows.append(row)
            self._open = goes_on
            return None
        draft = Draft(kind, [row], marker, self._depth(row) if kind is BlockKind.LIST_ITEM else 0)
        if kind is not BlockKind.LIST_ITEM:
            self._indents.clear()
        self._drafts.append(draft)
        self._open = draft
        return draft

    def _kind(self, row: Row, before: Row | None, after: Row | None) -> tuple[BlockKind, layout_lists.Marker | None]:
        if row.hidden:
            return BlockKind.PARAGRAPH, None
        if self._fonts.is_code(row):
            return BlockKind.CODE, None
        if self._fonts.looks_like_heading(row, before, after):
            return BlockKind.HEADING, None
        if row.tabular:
            return BlockKind.PARAGRAPH, None
        marker = layout_lists.marker_of(row.text)
        if marker is not None and self._may_begin_item(marker, row, before):
            return BlockKind.LIST_ITEM, marker
        if _CAPTION.match(row.text) and (before is None or self._fonts.stands_apart(row, before) or _ends(before)):
            return BlockKind.CAPTION, None
        return BlockKind.PARAGRAPH, None

    def _may_begin_item(self, marker: layout_lists.Marker, row: Row, before: Row | None) -> bool:
        last = self._drafts[-1] if self._drafts else None
        in_list = last is not None and last.kind is BlockKind.LIST_ITEM
        if in_list and last is not None and last.marker is not None and marker.label:
            labels = [draft.marker.label for draft in self._drafts[-40:] if draft.marker is not None]
            return any(layout_lists.follows(marker.label, label) for label in labels if label) or (
                layout_lists.follows(marker.label, None)
            )
        apart = before is None or _ends(before) or self._fonts.stands_apart(row, before)
        if marker.label:
            return apart and layout_lists.follows(marker.label, None)
        return in_list or apart or marker.shown not in "–—-*·" or row.rect.u0 > (before or row).rect.u0 + row.size / 2

    def _depth(self, row: Row) -> int:
        while self._indents and row.rect.u0 < self._indents[-1] - _LEAST_INDENT_AGREEMENT * row.size:
            self._indents.pop()
        if not self._indents or row.rect.u0 > self._indents[-1] + _LEAST_INDENT_AGREEMENT * row.size:
            self._indents.append(row.rect.u0)
        return len(self._indents) - 1

    def _going_on(self, kind: BlockKind, row: Row, after: Row | None) -> Draft | None:
        draft = self._open
        if draft is None:
            return None
        last = draft.last
        if row.page != last.page or row.angle != last.angle or row.rect.v1 < last.rect.v0:
            return self._continued(kind, row)
        if row.hidden != last.hidden or abs(row.size - last.size) > _SAME_SIZE * max(row.size, last.size):
            return None
        distance = row.rect.v1 - last.rect.v1
        if distance > _PARAGRAPH_GAP * self._fonts.pitch_on(row.page) * max(row.size, last.size):
            return None
        if kind is BlockKind.HEADING or draft.kind is BlockKind.HEADING:
            return draft if self._same_heading(kind, draft, row) else None
        if kind is BlockKind.CODE or draft.kind is BlockKind.CODE:
            return draft if kind is draft.kind else None
        if kind is BlockKind.CAPTION:
            return None
        return draft if self._same_paragraph(draft, row, after) else None

    def _same_heading(self, kind: BlockKind, draft: Draft, row: Row) -> bool:
        """Whether a heading goes on; its second row may be one that could not be a heading alone, such as years."""
        if row.bold != draft.last.bold or layout_fonts.NUMBERED.match(row.text) is not None:
            return False
        wordless = kind is BlockKind.PARAGRAPH and not row.tabular and self._fonts.stands_out(row)
        return draft.kind is BlockKind.HEADING and (
            kind is BlockKind.HEADING or (wordless and not any(map(str.isalpha, row.text)))
        )

    def _same_paragraph(self, draft: Draft, row: Row, after: Row | None) -> bool:
        last = draft.last
        if row.tabular or last.tabular:
            if row.tabular and last.tabular:
                draft.breaks.add(len(draft.rows))
                return True
            return False
        if last.text.endswith(hyphens.SOFT_HYPHEN):
            return True
        indent = row.rect.u0 - last.rect.u0
        if draft.kind is BlockKind.LIST_ITEM:
            return not (len(draft.rows) > 1 and abs(indent) > _INDENT * row.size and _ends(last)) and (
                row.rect.u0 >= draft.rows[0].rect.u0 - _LEAST_INDENT_AGREEMENT * row.size
            )
        if indent > _INDENT * row.size and (len(draft.rows) > 1 or _ends(last)):
            return False
        if indent < -_INDENT * row.size and len(draft.rows) > 1:
            return False
        if self._ended_early(draft, row, after):
            if _ends(last):
                return False
            if not row.text[0].islower():
                draft.breaks.add(len(draft.rows))
        return not _LEADERS.search(last.text) or self._break(draft)

    def _break(self, draft: Draft) -> bool:
        draft.breaks.add(len(draft.rows))
        return True

    def _ended_early(self, draft: Draft, row: Row, after: Row | None) -> bool:
        """Whether the first word of ``row`` had room at the end of the row before: then the line's end is meant."""
        last = draft.last
        near = [*draft.rows[-_EDGE_NEIGHBOURS:], row]
        if after is not None and after.angle == row.angle and after.rect.u0 < row.rect.u1:
            near.append(after)
        edge, start = max(item.rect.u1 for item in near), min(item.rect.u0 for item in near)
        words = row.text.split(maxsplit=1)
        word = (row.rect.u1 - row.rect.u0) * (len(words[0]) + 1) / max(1, len(row.text))
        return last.rect.u1 + word < edge - _SHORT * (edge - start)

    def _continued(self, kind: BlockKind, row: Row) -> Draft | None:
        """The draft that the first row of a page or column goes on with."""
        if kind is not BlockKind.PARAGRAPH or row.tabular:
            return None
        for draft in reversed(self._drafts[-_LOOK_BACK:]):
            last = draft.last
            if abs(last.size - row.size) <= 0.05 * row.size and draft.kind in {
                BlockKind.PARAGRAPH,
                BlockKind.LIST_ITEM,
            }:
                divided = last.text.endswith(hyphens.SOFT_HYPHEN)
                fits = last.hidden == row.hidden and last.angle == row.angle and not last.tabular
                goes_on = divided or (row.text[0].islower() and not _ends(last))
                return draft if fits and goes_on and row.page - last.page <= 1 else None
            if last.size >= row.size and draft.kind is not BlockKind.CAPTION:
                return None
        return None


def _ends(row: Row) -> bool:
    return _SENTENCE_END.search(row.text) is not None


def _demote(drafts: Sequence[tuple[int, Draft]]) -> None:
    """Headings and captions too long to be one are paragraphs."""
    for _, draft in drafts:
        length = sum(len(row.text) for row in draft.rows)
        long_heading = len(draft.rows) > _MAX_HEADING_ROWS or length > _MAX_HEADING_CHARS
        if (draft.kind is BlockKind.HEADING and long_heading) or (
            draft.kind is BlockKind.CAPTION and length > _MAX_CAPTION_CHARS
        ):
            draft.kind = BlockKind.PARAGRAPH


def _set_levels(headings: Sequence[Draft]) -> None:
    """Levels 1..6 by style, largest first; within a style a longer section number is deeper."""
    styles: list[tuple[float, bool]] = []
    for size, bold in sorted({(layout_fonts.rounded(d.last.size), d.last.bold) for d in headings}, reverse=True):
        styles.append((size, bold))
    shallowest: dict[tuple[float, bool], int] = {}
    for draft in headings:
        style = (layout_fonts.rounded(draft.last.size), draft.last.bold)
        if depth := _number_depth(draft):
            shallowest[style] = min(depth, shallowest.get(style, depth))
    for draft in headings:
        style = (layout_fonts.rounded(draft.last.size), draft.last.bold)
        deeper = max(0, _number_depth(draft) - shallowest.get(style, 0)) if _number_depth(draft) else 0
        draft.level = min(6, styles.index(style) + 1 + deeper)


def _number_depth(draft: Draft) -> int:
    match = layout_fonts.NUMBERED.match(draft.rows[0].text)
    return match["number"].count(".") + 1 if match is not None and match["number"] else 0


def _block(draft: Draft, joiner: hyphens.Joiner) -> Block:
    first = draft.rows[0]
    return Block(
        kind=draft.kind,
        text=_code(draft.rows) if draft.kind is BlockKind.CODE else _text(draft, joiner),
        level=draft.level,
        page=first.page,
        boxes=union_by_page(box for row in draft.rows for box in row.boxes),
        marker=draft.marker.shown if draft.marker is not None else None,
        hidden=first.hidden,
    )


def _text(draft: Draft, joiner: hyphens.Joiner) -> str:
    skipped = draft.marker.length if draft.marker is not None else 0
    text = draft.rows[0].text[skipped:]
    for position, row in enumerate(draft.rows[1:], start=1):
        meant = position in draft.breaks
        text = f"{hyphens.without_mark(text)}\n{row.text}" if meant else joiner.join(text, row.text)
    return _LEADERS.sub(".... ", hyphens.without_mark(text)).strip()


def _code(rows: Sequence[Row]) -> str:
    """Rows of code, each on its own line, indented by what the page shows."""
    left = min(row.rect.u0 for row in rows)
    lines: list[str] = []
    for row in rows:
        width = (row.rect.u1 - row.rect.u0) / max(1, len(row.text))
        indent = round((row.rect.u0 - left) / width) if width > 0 else 0
        lines.append(" " * min(indent, 80) + hyphens.without_mark(row.text))
    return "\n".join(lines)


def union_by_page(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """One box for each page, around all of ``boxes`` on it."""
    around: dict[int, Box] = {}
    for box in boxes:
        seen = around.get(box.page)
        around[box.page] = (
            box
            if seen is None
            else Box(box.page, min(seen.x0, box.x0), min(seen.y0, box.y0), max(seen.x1, box.x1), max(seen.y1, box.y1))
        )
    return tuple(around[page] for page in sorted(around))
