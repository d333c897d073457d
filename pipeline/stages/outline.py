"""The outline of a document while it is read from the top: which headings a block stands under.

A heading is never indexed by itself, and its text is never lost: it is in the path of what stands below it. A
heading with nothing below joins the next heading of its part; where there is none, its text counts as body.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pipeline.types import Block

Numbered: TypeAlias = tuple[int, Block]


@dataclass(slots=True)
class _Level:
    level: int
    headings: list[Numbered]
    used: bool = False


class Outline:
    """The headings above the present place, one stack for each part (attachment, note) of the document.

    ``joins`` says whether headings are short enough to share one level of a path.
    """

    def __init__(self, joins: Callable[[Sequence[Block]], bool]) -> None:
        self._joins = joins
        self._stacks: dict[tuple[str, ...], list[_Level]] = {}

    def enter(self, number: int, heading: Block) -> list[Numbered]:
        """Go below a heading; returns headings without text before it that are too many to join it: they are body."""
        stack = self._stacks.setdefault(heading.section, [])
        bare: list[Numbered] = []
        while stack and stack[-1].level >= heading.level:
            top = stack.pop()
            bare = bare if top.used else top.headings + bare
        surplus = bare if bare and not self._joins([*(block for _, block in bare), heading]) else []
        if surplus:
            _use(stack)
        stack.append(_Level(heading.level, [*([] if surplus else bare), (number, heading)]))
        return surplus

    def below(self, section: tuple[str, ...]) -> tuple[str, ...]:
        """The path of a block of text here, from the outermost part; its headings now have text."""
        _use(self._stacks.get(section, []))
        return self.path(section)

    def path(self, section: tuple[str, ...]) -> tuple[str, ...]:
        """Names of the part, then the headings above that have something below them."""
        used = [level for level in self._stacks.get(section, []) if level.used]
        return (*section, *(" ".join(block.text.split()) for level in used for _, block in level.headings))

    def leave(self, section: tuple[str, ...]) -> list[Numbered]:
        """End a part; returns its last headings when nothing came below them: they are body."""
        stack = self._stacks.get(section, [])
        bare = [numbered for level in stack if not level.used for numbered in level.headings]
        self._stacks[section] = [level for level in stack if level.used]
        return bare


def _use(stack: list[_Level]) -> None:
    for level in stack:
        level.used = True
