"""Running headers, footers and page numbers: what comes back on several pages at the same height near the edge."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from pipeline.stages.frame import frame_size
from pipeline.stages.layout_rows import Row
from pipeline.types import BlockKind, Page

# Outer part of the page, at the top and at the bottom, in which furniture stands.
_EDGE = 0.09
# In a short document twice is a repetition (left and right pages differ), in a longer one three times.
_SHORT_DOCUMENT, _SHORT_REPEATS, _REPEATS = 6, 2, 3
# Heights agree when they differ by at most one of this many steps of the page.
_HEIGHT_STEPS = 60
_MAX_CHARS = 200

_NUMBERS = re.compile(r"\d+|\b[ivxlc]+\b")
_SPACES = re.compile(r"\s+")
# A number alone at the edge is a page number even where it comes only once.
_PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|p\.|seite|pagina|página)\s*)?\d{1,4}(?:\s*(?:/|of|von|de|sur)\s*\d{1,4})?\W*", re.I
)

_Key = tuple[BlockKind, str]


def furniture(rows: Sequence[Row], pages: Mapping[int, Page]) -> dict[int, BlockKind]:
    """``header`` or ``footer`` by position in ``rows``, for every row that is one."""
    found: dict[int, tuple[_Key, int]] = {}
    seen: defaultdict[_Key, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for position, row in enumerate(rows):
        if row.hidden or len(row.text) > _MAX_CHARS:
            continue
        zone = _zone(row, pages[row.page])
        if zone is None:
            continue
        kind, step = zone
        key = (kind, _pattern(row.text))
        found[position] = (key, step)
        seen[key][step].add(row.page)
    needed = _SHORT_REPEATS if len(pages) <= _SHORT_DOCUMENT else _REPEATS
    return {
        position: key[0]
        for position, (key, step) in found.items()
        if len(seen[key][step - 1] | seen[key][step] | seen[key][step + 1]) >= needed
        or _PAGE_NUMBER.fullmatch(rows[position].text)
    }


def _zone(row: Row, page: Page) -> tuple[BlockKind, int] | None:
    _, extent = frame_size(page.width, page.height, row.angle)
    if extent <= 0:
        return None
    middle = (row.rect.v0 + row.rect.v1) / 2 / extent
    if _EDGE < middle < 1 - _EDGE:
        return None
    return (BlockKind.HEADER if middle < 0.5 else BlockKind.FOOTER), round(middle * _HEIGHT_STEPS)


def _pattern(text: str) -> str:
    """The text with every number alike, so that page 3 of 9 repeats page 2 of 9."""
    return _SPACES.sub(" ", _NUMBERS.sub("#", text.lower())).strip()
