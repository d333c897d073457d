"""What Word's styles and numbering say about a paragraph: heading level, list marker, hidden text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml.etree import _Element

from pipeline.engines.documents.html_rules import numeral

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING_NAME = re.compile(r"heading ([1-9])", re.IGNORECASE)
# Word's own ceiling for a chain of based-on styles is far lower; a loop must end.
_MAX_CHAIN = 32
_MAX_LEVEL = 8
_BODY_TEXT = 9
_PLACEHOLDER = re.compile(r"%([1-9])")
_STYLES = {"lowerLetter": "a", "upperLetter": "A", "lowerRoman": "i", "upperRoman": "I"}
BULLET = "-"


def value(element: _Element | None, path: str) -> str | None:
    """The ``w:val`` of a child element; '' when the child has none, None when there is no such child."""
    if element is None:
        return None
    found = element.find(path)
    return None if found is None else found.get(W + "val", "")


def number(text: str | None) -> int | None:
    """A small decimal number, None for anything else."""
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,9}", text) else None


def is_on(element: _Element | None, path: str) -> bool | None:
    """A toggle such as ``w:vanish``: True or False where it stands, None where it does not."""
    found = value(element, path)
    return None if found is None else found.lower() not in ("0", "false", "off")


@dataclass(frozen=True, slots=True)
class Style:
    """One style, its own properties only."""

    name: str
    based_on: str | None
    outline: int | None
    list_id: str | None
    list_level: int | None
    hidden: bool | None


class Styles:
    """The document's styles by id."""

    def __init__(self, root: _Element | None) -> None:
        self._styles: dict[str, Style] = {}
        for element in root.iterfind(W + "style") if root is not None else ():
            paragraph = element.find(W + "pPr")
            numbering = paragraph.find(W + "numPr") if paragraph is not None else None
            self._styles[element.get(W + "styleId", "")] = Style(
                name=(value(element, W + "name") or "").lower(),
                based_on=value(element, W + "basedOn"),
                outline=number(value(paragraph, W + "outlineLvl")),
                list_id=value(numbering, W + "numId"),
                list_level=number(value(numbering, W + "ilvl")),
                hidden=is_on(element.find(W + "rPr"), W + "vanish"),
            )

    def chain(self, style_id: str | None) -> Iterator[tuple[str, Style]]:
        """The style and those it is based on, nearest first."""
        for _ in range(_MAX_CHAIN):
            style = self._styles.get(style_id) if style_id is not None else None
            if style is None or style_id is None:
                return
            yield style_id, style
            style_id = style.based_on

    def name(self, style_id: str | None) -> str:
        """The style's built-in (English) name in lower case; '' for none."""
        return next((style.name for _, style in self.chain(style_id)), "")

    def heading_level(self, style_id: str | None, own_outline: int | None) -> int | None:
        """1..6 for a heading (deeper levels are 6), None for body text."""
        if own_outline is not None:
            return None if own_outline >= _BODY_TEXT else min(own_outline + 1, 6)
        for _, style in self.chain(style_id):
            if style.outline is not None:
                return None if style.outline >= _BODY_TEXT else min(style.outline + 1, 6)
            if named := _HEADING_NAME.fullmatch(style.name):
                return min(int(named[1]), 6)
            if style.name == "title":
                return 1
        return None

    def is_hidden(self, style_id: str | None) -> bool:
        """Whether text of this style is hidden."""
        return next((style.hidden for _, style in self.chain(style_id) if style.hidden is not None), False)


@dataclass(slots=True)
class _Level:
    start: int
    form: str
    text: str
    style: str | None


@dataclass(slots=True)
class _Abstract:
    levels: dict[int, _Level] = field(default_factory=dict)
    counters: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListPlace:
    """A list paragraph's depth (from 0) and marker as shown; '' where its numbering shows nothing."""

    depth: int
    marker: str


class Numbering:
    """The document's list definitions and their running counters. Ask once for each paragraph, in order."""

    def __init__(self, root: _Element | None, styles: Styles) -> None:
        self._styles = styles
        self._abstracts: dict[str, _Abstract] = {}
        self._lists: dict[str, str] = {}
        self._overrides: dict[str, dict[int, int]] = {}
        self._overridden: set[tuple[str, int]] = set()
        if root is None:
            return
        for element in root.iterfind(W + "abstractNum"):
            self._abstracts[element.get(W + "abstractNumId", "")] = _Abstract(_levels(element))
        for element in root.iterfind(W + "num"):
            list_id = element.get(W + "numId", "")
            self._lists[list_id] = value(element, W + "abstractNumId") or ""
            self._overrides[list_id] = {
                level: start
                for override in element.iterfind(W + "lvlOverride")
                if (level := number(override.get(W + "ilvl"))) is not None
                and (start := number(value(override, W + "startOverride"))) is not None
            }

    def place(self, properties: _Element | None, style_id: str | None) -> ListPlace | None:
        """Where a paragraph stands in its list, counting it; None for a paragraph in no list."""
        own = properties.find(W + "numPr") if properties is not None else None
        list_id, level = value(own, W + "numId"), number(value(own, W + "ilvl"))
        owner: str | None = None
        if list_id is None:
            for inherited_id, style in self._styles.chain(style_id):
                if style.list_id is not None:
                    list_id, owner = style.list_id, inherited_id
                    level = level if level is not None else style.list_level
                    break
        if list_id is None or list_id == "0":
            return None
        abstract = self._abstracts.get(self._lists.get(list_id, ""))
        if abstract is None:
            return ListPlace(max(0, min(level or 0, _MAX_LEVEL)), BULLET)
        if level is None:
            level = next((at for at, each in abstract.levels.items() if owner and each.style == owner), 0)
        level = max(0, min(level, _MAX_LEVEL))
        return ListPlace(level, self._count(list_id, abstract, level))

    def _count(self, list_id: str, abstract: _Abstract, level: int) -> str:
        counters = abstract.counters
        override = self._overrides.get(list_id, {}).get(level)
        if override is not None and (list_id, level) not in self._overridden:
            self._overridden.add((list_id, level))
            counters[level] = override
        else:
            counters[level] = counters[level] + 1 if level in counters else _start(abstract, level)
        for deeper in [each for each in counters if each > level]:
            del counters[deeper]
        return _marker(abstract, level)


def _levels(abstract: _Element) -> dict[int, _Level]:
    levels: dict[int, _Level] = {}
    for element in abstract.iterfind(W + "lvl"):
        at = number(element.get(W + "ilvl"))
        if at is not None and 0 <= at <= _MAX_LEVEL:
            start = number(value(element, W + "start"))
            levels[at] = _Level(
                start=1 if start is None else start,
                form=value(element, W + "numFmt") or "decimal",
                text=value(element, W + "lvlText") or "",
                style=value(element, W + "pStyle"),
            )
    return levels


def _start(abstract: _Abstract, level: int) -> int:
    return abstract.levels[level].start if level in abstract.levels else 1


def _marker(abstract: _Abstract, level: int) -> str:
    defined = abstract.levels.get(level)
    if defined is None or defined.form == "bullet":
        return BULLET
    if defined.form == "none":
        return ""

    def written(found: re.Match[str]) -> str:
        at = int(found[1]) - 1
        form = abstract.levels[at].form if at in abstract.levels else "decimal"
        count = abstract.counters.get(at, _start(abstract, at))
        return f"{count:02d}" if form == "decimalZero" else numeral(count, _STYLES.get(form, "1"))

    return _PLACEHOLDER.sub(written, defined.text).strip()
