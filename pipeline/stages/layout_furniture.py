"""Running headers, footers and page numbers: what comes back on several pages at the same height near the edge."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from pipeline.stages.frame import frame_size
from pipeline.stages.layout_rows import Row
from pipeline.types import BlockKind, Page

# Outer part of the page, at the top and at the bottom, in which furniture stands.
_EDGE = 0.09
# In a short document twice is a repetition (left and right pages differ), in a longer one three times.
_SHORT_DOCUMENT, _SHORT_REPEATS, _REPEATS = 6, 2, 3
# Heights agree when they differ by at most one of this many steps of the page.
_HEIGHT_STEPS = 60
_MAX_CHARS, _MAX_NUMBERS = 200, 6

_NUMBER = re.compile(r"\d{1,5}|\b[ivxlc]{1,8}\b")
_SPACES = re.compile(r"\s+")
# A number alone at the edge is a page number even where it comes only once.
_PAGE_NUMBER = re.compile(
    r"\W*(?:(?:page|p\.|seite|pagina|página)\s*)?\d{1,4}(?:\s*(?:/|of|von|de|sur)\s*\d{1,4})?\W*", re.IGNORECASE
)
_ROMAN = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}

_Key = tuple[BlockKind, str]


def furniture(rows: Sequence[Row], pages: Mapping[int, Page]) -> dict[int, BlockKind]:
    """``header`` or ``footer`` by position in ``rows``, for every row that is one."""
    found: dict[int, tuple[list[_Key], int]] = {}
    seen: defaultdict[_Key, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for position, row in enumerate(rows):
        zone = _zone(row, pages[row.page])
        if zone is None or row.hidden or len(row.text) > _MAX_CHARS:
            continue
        kind, step = zone
        keys = [(kind, pattern) for pattern in _patterns(row.text, row.page)]
        found[position] = (keys, step)
        for key in keys:
            seen[key][step].add(row.page)
    needed = _SHORT_REPEATS if len(pages) <= _SHORT_DOCUMENT else _REPEATS
    return {
        position: keys[0][0]
        for position, (keys, step) in found.items()
        if _PAGE_NUMBER.fullmatch(rows[position].text)
        or any(len(seen[key][step - 1] | seen[key][step] | seen[key][step + 1]) >= needed for key in keys)
    }


def _zone(row: Row, page: Page) -> tuple[BlockKind, int] | None:
    _, extent = frame_size(page.width, page.height, row.angle)
    if extent <= 0:
        return None
    middle = (row.rect.v0 + row.rect.v1) / 2 / extent
    if _EDGE < middle < 1 - _EDGE:
        return None
    return (BlockKind.HEADER if middle < 0.5 else BlockKind.FOOTER), round(middle * _HEIGHT_STEPS)


def _patterns(text: str, page: int) -> Iterator[str]:
    """The text as it stands, and with each of its numbers as a distance from the page's own.

    So page 3 of 9 repeats page 2 of 9, and a heading 3.1 at the top of a page does not repeat 2.1 of some page before.
    """
    text = _SPACES.sub(" ", text.lower()).strip()
    yield text
    for match in list(_NUMBER.finditer(text))[:_MAX_NUMBERS]:
        yield f"{text[: match.start()]}#{_value(match.group()) - page}#{text[match.end() :]}"


def _value(number: str) -> int:
    if number.isdigit():
        return int(number)
    values = [_ROMAN[letter] for letter in number]
    return sum(
        -value if value < following else value for value, following in zip(values, [*values[1:], 0], strict=True)
    )
