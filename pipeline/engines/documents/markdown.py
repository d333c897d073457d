"""Markdown: CommonMark with tables. Block text is plain (links by their text); fences are opaque code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipeline.engines.documents import html
from pipeline.engines.documents.charset import decode
from pipeline.engines.documents.sink import BlockSink, Limits
from pipeline.stages.clean import clean_text
from pipeline.types import Block, BlockKind, Cell, Table, WindowText

_FRONT_MATTER = re.compile(r"\A(?P<fence>---|\+\+\+)[^\S\n]*\n(?P<body>.*?\n)(?P=fence)[^\S\n]*(?:\n|\Z)", re.DOTALL)
_FRONT_TITLE = re.compile(
    r"""^title[^\S\n]*[:=][^\S\n]*(?P<quote>["']?)(?P<title>.+?)(?P=quote)[^\S\n]*$""", re.MULTILINE
)
_LINE_BREAK_TAG = re.compile(r"<br\s*/?>", re.IGNORECASE)
# Parsing takes about forty times the source in memory, so a long source is parsed in parts that begin at a heading.
_PART_CHARS = 1_000_000
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")


def read_markdown(data: bytes, limits: Limits) -> WindowText:
    """Headings, paragraphs, list items with marker and depth, tables and code; front matter gives only the title."""
    sink = BlockSink(limits)
    source = clean_text(decode(data))
    title: str | None = None
    if front := _FRONT_MATTER.match(source):
        source = source[front.end() :]
        named = _FRONT_TITLE.search(front["body"])
        title = named["title"] if named else None
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    walker = _Walker(sink)
    environment: dict[str, object] = {}
    for part in _parts(source):
        walker.walk(parser.parse(part, environment))
        if sink.full:
            break
    return sink.window(title or walker.title)


def _parts(source: str) -> Sequence[str]:
    """The source whole, or cut before ATX headings outside fences about every :data:`_PART_CHARS` characters."""
    if len(source) <= _PART_CHARS:
        return [source]
    parts: list[str] = []
    held: list[str] = []
    size = 0
    fence = ""
    for line in source.splitlines(keepends=True):
        if opened := _FENCE.match(line):
            mark = opened[1]
            if not fence:
                fence = mark
            elif mark.startswith(fence):
                fence = ""
        elif not fence and size > _PART_CHARS and line.startswith("#"):
            parts.append("".join(held))
            held, size = [], 0
        held.append(line)
        size += len(line)
    return [*parts, "".join(held)]


@dataclass(slots=True)
class _List:
    """An open list: its next number when ordered, and the delimiter after it."""

    next_number: int | None
    delimiter: str


@dataclass(slots=True)
class _Item:
    """An open list item; ``text`` grows until something that is not text stands in the item."""

    marker: str
    depth: int
    text: list[str] = field(default_factory=list)
    emitted: bool = False


class _Walker:
    """Turns the parser's flat token stream into blocks."""

    def __init__(self, sink: BlockSink) -> None:
        self._sink = sink
        self._lists: list[_List] = []
        self._items: list[_Item] = []
        self.title: str | None = None

    def walk(self, tokens: Sequence[Token]) -> None:
        position = 0
        while position < len(tokens) and not self._sink.full:
            token = tokens[position]
            if token.type == "table_open":
                position = self._table(tokens, position)
                continue
            self._token(token, tokens[position - 1] if position else None)
            position += 1

    def _token(self, token: Token, before: Token | None) -> None:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                self._flush()
                self._lists.append(_list(token))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                self._items.append(_Item(self._marker(), len(self._lists) - 1))
            case "list_item_close":
                self._flush()
                self._items.pop()
            case "inline":
                self._inline(token, before)
            case "fence" | "code_block":
                self._flush()
                language = token.info.split()[0].strip("{}.") if token.info.split() else ""
                self._sink.add(Block(BlockKind.CODE, token.content, language=language or None))
            case "html_block":
                self._flush()
                html.read_fragment(token.content, self._sink)

    def _inline(self, token: Token, before: Token | None) -> None:
        text = inline_text(token.children or [])
        if before is not None and before.type == "heading_open":
            self._flush()
            level = int(before.tag.removeprefix("h"))
            self._sink.add(Block(BlockKind.HEADING, " ".join(text.split()), level=level))
            if self.title is None and level == 1:
                self.title = text
        elif self._items and not self._items[-1].emitted:
            self._items[-1].text.append(text)
        else:
            self._sink.add(Block(BlockKind.PARAGRAPH, text))

    def _marker(self) -> str:
        current = self._lists[-1]
        if current.next_number is None:
            return "-"
        current.next_number += 1
        return f"{current.next_number - 1}{current.delimiter}"

    def _flush(self) -> None:
        """Emit the open item: what follows is nested in it or comes after it."""
        if self._items and not self._items[-1].emitted:
            item = self._items[-1]
            item.emitted = True
            self._sink.add(Block(BlockKind.LIST_ITEM, "\n".join(item.text), level=item.depth, marker=item.marker))

    def _table(self, tokens: Sequence[Token], position: int) -> int:
        self._flush()
        cells: list[Cell] = []
        row, column, columns = -1, 0, 0
        while tokens[position].type != "table_close":
            token = tokens[position]
            if token.type == "tr_open":
                row, column = row + 1, 0
                self._sink.check_cells(len(cells))
            elif token.type in ("th_open", "td_open"):
                text = " ".join(inline_text(tokens[position + 1].children or []).split())
                cells.append(Cell(row, column, text, header=token.type == "th_open"))
                column += 1
                columns = max(columns, column)
            position += 1
        self._sink.add_table(Block(BlockKind.TABLE, ""), Table(row + 1, columns, tuple(cells)))
        return position + 1


def _list(token: Token) -> _List:
    if token.type == "bullet_list_open":
        return _List(None, "")
    return _List(int(token.attrGet("start") or 1) if token.attrGet("start") != 0 else 0, token.markup or ".")


def inline_text(tokens: Sequence[Token]) -> str:
    """The plain text of inline tokens: links by their text, images by their description, tags dropped."""
    parts: list[str] = []
    for token in tokens:
        match token.type:
            case "text" | "code_inline" | "text_special":
                parts.append(token.content)
            case "softbreak":
                parts.append(" ")
            case "hardbreak":
                parts.append("\n")
            case "image":
                parts.append(inline_text(token.children or []))
            case "html_inline" if _LINE_BREAK_TAG.fullmatch(token.content):
                parts.append("\n")
    return "".join(parts)
