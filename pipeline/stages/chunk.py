"""Chunking: blocks to pieces that are embedded, keyword-indexed and cited, cut where the document itself divides."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, pairwise

from pipeline.stages import places, tables
from pipeline.stages.cut import MAX_CHARS_PER_TOKEN, cost_of, cut
from pipeline.stages.outline import Numbered, Outline
from pipeline.types import Block, BlockKind, Chunk, ChunkKind, index_text

RULES = 1

_LEFT_OUT = frozenset({BlockKind.HEADER, BlockKind.FOOTER})
_KINDS = {BlockKind.CODE: ChunkKind.CODE, BlockKind.DESCRIPTION: ChunkKind.DESCRIPTION}
# What is repeated (a block in the next chunk, a caption with each piece of its table) takes at most a fourth of one.
_REPEATED_SHARE = 4


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """Limits of a chunk in tokens: of all that is indexed, and of the heading path in it (contract, Limits)."""

    tokens: int = 256
    path_tokens: int = 64

    def __post_init__(self) -> None:
        if not 0 < self.path_tokens <= self.tokens // 2:
            raise ValueError("the heading path may take at most half of a chunk")


@dataclass(frozen=True, slots=True)
class _Run:
    """Neighbouring blocks of one kind below one heading, on one slide or sheet; ``bare`` are headings without text."""

    kind: ChunkKind
    path: tuple[str, ...]
    blocks: tuple[Numbered, ...]
    bare: bool = False


@dataclass(frozen=True, slots=True)
class _Item:
    """A block of text, or a piece of one that is too long, with its cost in tokens."""

    number: int
    block: Block
    text: str
    cost: int
    whole: bool = True

    @property
    def listed(self) -> bool:
        return self.block.kind is BlockKind.LIST_ITEM


@dataclass(frozen=True, slots=True)
class _Draft:
    """A chunk before it is numbered."""

    kind: ChunkKind
    path: tuple[str, ...]
    content: str
    blocks: tuple[Numbered, ...]
    cells: str | None = None


class StructureAwareChunker:
    """Chunks that follow headings, lists, tables and code. Deterministic and free of side effects.

    ``count_tokens`` must be additive over white space, as word-piece tokenizers are; ``tokenizer`` names its exact
    version, because another one cuts other chunks.
    """

    def __init__(self, count_tokens: Callable[[str], int], limits: ChunkLimits, *, tokenizer: str) -> None:
        self.version = f"structure-{RULES}/{tokenizer}/{limits.tokens}-{limits.path_tokens}"
        self._limits = limits
        self._count = count_tokens
        self._cost = cost_of(count_tokens)

    def split(self, blocks: Sequence[Block]) -> tuple[Chunk, ...]:
        """Chunks in reading order, ordinals from 0; block numbers are indexes into ``blocks``.

        Headers, footers, hidden and empty blocks are left out. Headings with nothing below them at the end of a part
        are added to its last chunk, or are text of their own where that is full or there is none.
        """
        drafts: list[_Draft] = []
        for run in self._runs([(number, block) for number, block in enumerate(blocks) if _is_indexed(block)]):
            joined = self._joined(drafts[-1], run) if run.bare and drafts else None
            if joined is not None:
                drafts[-1] = joined
            else:
                drafts.extend(self._drafts(run))
        return tuple(self._chunk(ordinal, draft) for ordinal, draft in enumerate(drafts))

    def _runs(self, blocks: Sequence[Numbered]) -> Iterator[_Run]:
        outline = Outline(self._share_a_level)
        endings = {block.section: number for number, block in blocks}
        captions = self._captions(blocks)
        attached = {number for number, _ in captions.values()}
        path_of = cache(self._path)
        held: list[_Run] = []
        for number, block in blocks:
            if block.kind is BlockKind.HEADING:
                surplus = outline.enter(number, block)
                path = path_of(outline.path(block.section)) if surplus else ()
                held.extend(_Run(ChunkKind.TEXT, path, (heading,)) for heading in surplus)
            elif number not in attached:
                path = path_of(outline.below(block.section))
                caption = [captions[number]] if number in captions else []
                together = sorted([(number, block), *caption], key=lambda numbered: numbered[0])
                held.append(_Run(_kind_of(block), path, tuple(together)))
            if endings[block.section] == number and (bare := outline.leave(block.section)):
                yield from _merged(held)
                held = []
                yield _Run(ChunkKind.TEXT, path_of(outline.path(block.section)), tuple(bare), bare=True)
        yield from _merged(held)

    def _captions(self, blocks: Sequence[Numbered]) -> dict[int, Numbered]:
        """The caption of each table by its number: the block before it, else the one after that no table follows."""
        found: dict[int, Numbered] = {}
        room = (self._limits.tokens - self._limits.path_tokens) // _REPEATED_SHARE
        for at, (number, table) in enumerate(blocks):
            if _kind_of(table) is not ChunkKind.TABLE:
                continue
            before, after, follows = (blocks[max(0, i) : i + 1] for i in (at - 1, at + 1, at + 2))
            if follows and _kind_of(follows[0][1]) is ChunkKind.TABLE:
                after = []
            for near in (*before, *after):
                block = near[1]
                same_part = block.kind is BlockKind.CAPTION and block.section == table.section
                if same_part and block.sheet in (None, table.sheet) and self._cost(block.text) <= room:
                    found[number] = near
                    break
        return found

    def _share_a_level(self, headings: Sequence[Block]) -> bool:
        return sum(self._cost(heading.text) + 1 for heading in headings) <= self._limits.path_tokens // 2

    def _path(self, levels: tuple[str, ...]) -> tuple[str, ...]:
        """The last levels that fit the limit; a level too long by itself is cut between words."""
        kept = len(levels)
        room = self._limits.path_tokens
        while kept and (room := room - self._cost(levels[kept - 1]) - 1) >= -1:  # no sign before the first level
            kept -= 1
        if levels and kept == len(levels):
            return (next(cut(levels[-1], self._cost, self._limits.path_tokens)),)
        return levels[kept:]

    def _drafts(self, run: _Run) -> Iterator[_Draft]:
        budget = self._limits.tokens - (self._cost(" > ".join(run.path)) if run.path else 0)
        match run.kind:
            case ChunkKind.TABLE:
                yield from self._table(run, budget)
            case ChunkKind.CODE:
                _, block = run.blocks[0]
                for content in self._code(block.text.strip("\n").rstrip(), budget):
                    yield _Draft(run.kind, run.path, content, run.blocks)
            case _:
                for group in _packed(list(self._items(run, budget)), budget):
                    yield _Draft(run.kind, run.path, _text_of(group), tuple((i.number, i.block) for i in group))

    def _items(self, run: _Run, budget: int) -> Iterator[_Item]:
        for number, block in run.blocks:
            text = shown(block)
            cost = self._cost(text) if len(text) <= budget * MAX_CHARS_PER_TOKEN else budget + 1
            if cost <= budget:
                yield _Item(number, block, text, cost)
            else:
                for piece in cut(text, self._cost, budget):
                    yield _Item(number, block, piece, self._cost(piece), whole=False)

    def _table(self, run: _Run, budget: int) -> Iterator[_Draft]:
        number, block = next(numbered for numbered in run.blocks if _kind_of(numbered[1]) is ChunkKind.TABLE)
        above = [b.text.strip() for n, b in run.blocks if n < number]
        below = [b.text.strip() for n, b in run.blocks if n > number]
        room = budget - sum(self._cost(text) for text in (*above, *below))
        if block.table is None:
            return
        for piece in tables.split(block.table, self._cost, room):
            cells = places.rows_range(block.cells, block.table, piece.first_row, piece.last_row)
            yield _Draft(run.kind, run.path, "\n\n".join([*above, piece.text, *below]), run.blocks, cells)

    def _code(self, text: str, budget: int) -> Iterator[str]:
        """Code whole, else as many lines as fit; a line too long is cut between words."""
        if len(text) <= budget * MAX_CHARS_PER_TOKEN and self._cost(text) <= budget:
            yield text
            return
        held: list[str] = []
        used = 0
        for line in text.split("\n"):
            fits = len(line) <= budget * MAX_CHARS_PER_TOKEN and self._cost(line) <= budget
            for piece in [line] if fits else cut(line, self._cost, budget):
                needed = self._cost(piece)
                if held and used + needed > budget:
                    yield "\n".join(held)
                    held, used = [], 0
                held.append(piece)
                used += needed
        if any(line.strip() for line in held):
            yield "\n".join(held)

    def _joined(self, draft: _Draft, run: _Run) -> _Draft | None:
        """The draft with headings that nothing follows added to it; None when it is of another part or has no room."""
        content = "\n\n".join([draft.content, *(block.text.strip() for _, block in run.blocks)])
        same_part = draft.blocks[0][1].section == run.blocks[0][1].section
        if not same_part or self._cost(index_text(draft.path, content)) > self._limits.tokens:
            return None
        return replace(draft, content=content, blocks=draft.blocks + run.blocks)

    def _chunk(self, ordinal: int, draft: _Draft) -> Chunk:
        indexed = index_text(draft.path, draft.content)
        numbers = [number for number, _ in draft.blocks]
        blocks = list(dict(draft.blocks).values())
        language = places.language_of(blocks)
        return Chunk(
            ordinal=ordinal,
            kind=draft.kind,
            content=draft.content,
            heading_path=draft.path,
            location=places.location_of(blocks, draft.cells),
            first_block=min(numbers),
            last_block=max(numbers),
            token_count=self._count(indexed),
            content_hash=hashlib.sha256(indexed.encode()).hexdigest(),
            confidence=places.confidence_of(blocks),
            method=places.method_of(blocks),
            metadata={"language": language} if language else {},
        )


def shown(block: Block) -> str:
    """A block's text as it stands in a chunk: a list item with its marker, indented by its depth."""
    text = block.text.strip()
    return f"{'  ' * block.level}{block.marker or '-'} {text}" if block.kind is BlockKind.LIST_ITEM else text


def _is_indexed(block: Block) -> bool:
    if block.hidden or block.kind in _LEFT_OUT:
        return False
    return any(cell.text.strip() for cell in block.table.cells) if block.table is not None else bool(block.text.strip())


def _kind_of(block: Block) -> ChunkKind:
    if block.table is not None and block.kind is BlockKind.TABLE:
        return ChunkKind.TABLE
    return _KINDS.get(block.kind, ChunkKind.TEXT)


def _merged(runs: Sequence[_Run]) -> Iterator[_Run]:
    """Neighbouring runs of text with the same path and place as one; tables and code stay by themselves."""

    def place(run: _Run) -> tuple[object, ...]:
        number, block = run.blocks[0]
        alone = number if run.kind in (ChunkKind.TABLE, ChunkKind.CODE) else None
        return run.kind, run.path, block.section, block.slide, block.sheet, alone

    for _, group in groupby(runs, place):
        first, *others = group
        yield replace(first, blocks=first.blocks + tuple(numbered for run in others for numbered in run.blocks))


def _units(items: Sequence[_Item], budget: int) -> Iterator[list[_Item]]:
    """Items that belong together: a list that fits one chunk, else each item by itself."""
    for listed, group in groupby(items, lambda item: item.listed):
        members = list(group)
        if listed and sum(item.cost for item in members) <= budget:
            yield members
        else:
            yield from ([item] for item in members)


def _packed(items: Sequence[_Item], budget: int) -> Iterator[list[_Item]]:
    """Items in groups within the budget, each beginning with the last block of the one before where that is short."""
    held: list[_Item] = []
    used = 0
    for unit in _units(items, budget):
        # A list moves on whole only when that leaves no near-empty chunk behind.
        for part in (
            [unit] if used >= budget // 2 or used + sum(i.cost for i in unit) <= budget else [[i] for i in unit]
        ):
            needed = sum(item.cost for item in part)
            same_block = bool(held) and not part[0].whole and held[-1].number == part[0].number
            if held and (used + needed > budget or same_block):
                yield held
                held = _overlap(held, needed, budget)
                used = sum(item.cost for item in held)
            held = [*held, *part]
            used += needed
    if held:
        yield held


def _overlap(group: Sequence[_Item], needed: int, budget: int) -> list[_Item]:
    """The last block of a group when it may be repeated before the next part."""
    last = group[-1]
    repeats = last.whole and len(group) > 1 and last.cost <= budget // _REPEATED_SHARE and last.cost + needed <= budget
    return [last] if repeats else []


def _text_of(group: Sequence[_Item]) -> str:
    """The body of a chunk: blocks set apart by an empty line, items of a list by a line end."""
    parts = [group[0].text]
    for before, item in pairwise(group):
        parts += ["\n" if before.listed and item.listed else "\n\n", item.text]
    return "".join(parts)
