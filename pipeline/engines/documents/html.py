"""HTML: what a reader of the page sees as its content, in document order.

Scripts, navigation, page headers and footers, asides and hidden elements are not content. The tree is
walked without recursion, because a page may nest as deep as its author likes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pipeline.engines.documents import html_rules as rules
from pipeline.engines.documents.charset import decode
from pipeline.engines.documents.html_table import read_table
from pipeline.engines.documents.sink import BlockSink, Limits, Refused
from pipeline.errors import FailureCode
from pipeline.stages.clean import clean_text
from pipeline.types import Block, BlockKind, WindowText

_META_CHARSET = re.compile(rb"""<meta[^>]{0,500}?charset\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_XML_ENCODING = re.compile(rb"""\A\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)""")
_PRESCAN_BYTES = 4096
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source|brush:)[-\s]?([\w+#-]+)")
_TAG = re.compile(r"<(/?)(div|section|article|ul|ol|dl|blockquote|table|center|fieldset)\b", re.IGNORECASE)
# The parser's time grows with the square of the depth (26 s at 100,000); browsers
# themselves stop at 512.
MAX_DEPTH = 1_000


def read_html(data: bytes, limits: Limits) -> WindowText:
    """Headings, paragraphs, list items with markers, tables with spans, code and captions; the page's title."""
    sink = BlockSink(limits)
    source = decode(data, _declared(data[:_PRESCAN_BYTES]))
    _check_depth(source)
    page = LexborHTMLParser(source)
    title = page.css_first("head > title")
    walker = _Walker(sink)
    if page.body is not None:
        walker.walk(page.body)
    return sink.window((title.text() if title is not None else "") or walker.first_heading)


def read_fragment(source: str, sink: BlockSink) -> None:
    """Add the blocks of a piece of HTML that stands in another document."""
    _check_depth(source)
    page = LexborHTMLParser(source)
    if page.body is not None:
        _Walker(sink).walk(page.body)


def _declared(head: bytes) -> str | None:
    found = _META_CHARSET.search(head) or _XML_ENCODING.search(head)
    return found[1].decode("ascii", "replace") if found else None


def _check_depth(source: str) -> None:
    """Raise :class:`Refused` for elements nested too deep to be parsed in reasonable time."""
    depth = 0
    for tag in _TAG.finditer(source):
        depth = max(0, depth - 1) if tag[1] else depth + 1
        if depth > MAX_DEPTH:
            detail = f"The page nests elements more than {MAX_DEPTH:,} levels deep."
            raise Refused(FailureCode.MALFORMED, detail)


@dataclass(slots=True)
class _List:
    """An open list: its next number (None for bullets), how numbers are written and which way they go."""

    next_number: int | None
    style: str = "1"
    step: int = 1


@dataclass(slots=True)
class _Item:
    """An open list item; ``text`` grows until something that is not text stands in the item."""

    marker: str
    depth: int
    text: list[str] = field(default_factory=list)
    emitted: bool = False


class _Walker:
    """Collects inline text until a block ends, and knows what kind of block that was."""

    def __init__(self, sink: BlockSink) -> None:
        self._sink = sink
        self._inline: list[str] = []
        self._lists: list[_List] = []
        self._items: list[_Item] = []
        self._kinds: list[tuple[BlockKind, int]] = []
        self._sections = 0
        self.first_heading: str | None = None

    def walk(self, root: LexborNode) -> None:
        open_elements: list[LexborNode] = []
        node = root.child
        while (node is not None or open_elements) and not self._sink.full:
            if node is None:
                parent = open_elements.pop()
                self._leave(parent)
                node = parent.next
            elif self._enter(node):
                open_elements.append(node)
                node = node.child
            else:
                node = node.next
        self._end_text()
        self._end_item()

    def _enter(self, node: LexborNode) -> bool:
        """Begin a node; True when its children are to be walked and :meth:`_leave` to be called."""
        if node.is_text_node:
            self._inline.append(node.text_content or "")
            return False
        tag = node.tag
        if not node.is_element_node or not rules.is_content(node, in_section=self._sections > 0):
            return False
        if tag in rules.INLINE_VALUES:
            self._inline.append(rules.inline_value(node))
            return False
        if tag == "table":
            self._end_text()
            return self._table(node)
        if tag == "pre":
            self._end_text()
            self._end_item()
            self._sink.add(Block(BlockKind.CODE, rules.raw_text(node), language=_language(node)))
            return False
        if tag in rules.BLOCKS:
            self._end_text()
            self._open_block(node, tag)
        return True

    def _open_block(self, node: LexborNode, tag: str) -> None:
        if tag in rules.SECTIONS:
            self._sections += 1
        elif tag in ("ul", "ol", "menu"):
            self._end_item()
            self._lists.append(_opened_list(node, tag))
        elif tag == "li":
            self._items.append(_Item(self._marker(node), max(0, len(self._lists) - 1)))
        elif tag in rules.HEADINGS:
            self._end_item()
            self._kinds.append((BlockKind.HEADING, int(tag[1])))
        elif tag in ("figcaption", "caption"):
            self._end_item()
            self._kinds.append((BlockKind.CAPTION, 0))

    def _leave(self, node: LexborNode) -> None:
        tag = node.tag
        if tag not in rules.BLOCKS and tag != "table":
            return
        self._end_text()
        if tag in rules.SECTIONS:
            self._sections -= 1
        elif tag in ("ul", "ol", "menu"):
            self._lists.pop()
        elif tag == "li":
            self._end_item()
            self._items.pop()
        elif tag in rules.HEADINGS or tag in ("figcaption", "caption"):
            self._kinds.pop()

    def _end_text(self) -> None:
        """A block ends: what was collected becomes a heading, caption, part of the open item, or a paragraph."""
        text = rules.collapse("".join(self._inline))
        self._inline.clear()
        if not text:
            return
        if self._kinds:
            kind, level = self._kinds[-1]
            text = " ".join(text.split()) if kind is BlockKind.HEADING else text
            self._sink.add(Block(kind, text, level=level))
            if kind is BlockKind.HEADING and self.first_heading is None:
                self.first_heading = text
        elif self._items and not self._items[-1].emitted:
            self._items[-1].text.append(text)
        else:
            self._sink.add(Block(BlockKind.PARAGRAPH, text))

    def _end_item(self) -> None:
        """Emit the open item's text: what follows is nested in it or comes after it."""
        if self._items and not self._items[-1].emitted:
            item = self._items[-1]
            item.emitted = True
            self._sink.add(Block(BlockKind.LIST_ITEM, "\n".join(item.text), level=item.depth, marker=item.marker))

    def _table(self, node: LexborNode) -> bool:
        found = read_table(node, self._sink)
        if found is None:
            return True
        self._end_item()
        if found.caption:
            self._sink.add(Block(BlockKind.CAPTION, found.caption))
        self._sink.add_table(Block(BlockKind.TABLE, ""), found.table)
        return False

    def _marker(self, node: LexborNode) -> str:
        current = self._lists[-1] if self._lists else _List(None)
        if current.next_number is None:
            return "-"
        number = rules.whole_number(node, "value", current.next_number)
        current.next_number = number + current.step
        return rules.numeral(number, current.style) + "."


def _opened_list(node: LexborNode, tag: str) -> _List:
    if tag != "ol":
        return _List(None)
    backwards = "reversed" in node.attributes
    items = sum(1 for child in rules.children(node) if child.tag == "li") if backwards else 1
    start = rules.whole_number(node, "start", items)
    return _List(start, node.attributes.get("type") or "1", -1 if backwards else 1)


def _language(node: LexborNode) -> str | None:
    code = node.css_first("code")
    for element in (node, code):
        if element is not None and (found := _LANGUAGE.search(element.attributes.get("class") or "")):
            return clean_text(found[1])
    return None
