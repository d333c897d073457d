"""Word documents: headings, paragraphs, lists with their numbers, tables with spans, as the final text reads.

Tracked insertions are text and deletions are not. Hidden text is kept apart and marked.
"""

from __future__ import annotations

import zipfile
import zlib
from typing import BinaryIO

import docx
from docx.document import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.opc.exceptions import OpcError
from docx.opc.part import XmlPart
from docx.oxml.exceptions import InvalidXmlError
from lxml.etree import LxmlError, _Element

from pipeline.engines import ole, zipgate
from pipeline.engines.documents.docx_styles import Numbering, Styles, W, is_on, number, value
from pipeline.engines.documents.docx_text import Text, paragraph_text
from pipeline.engines.documents.grid import GridBuilder
from pipeline.engines.documents.sink import BlockSink, Limits
from pipeline.errors import Failure, FailureCode
from pipeline.stages.clean import clean_text
from pipeline.types import Block, BlockKind, Table, WindowText

# What python-docx and what it stands on raise for packages that are not what they should be.
_UNREADABLE = (
    OpcError,
    InvalidXmlError,
    LxmlError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    AssertionError,
    NotImplementedError,
)
# Containers that say nothing about what is in them.
_WRAPPERS = frozenset({W + "ins", W + "moveTo", W + "customXml", W + "smartTag", W + "sdtContent"})
# A first row is a header unless the table's look says otherwise (ECMA-376 part 1, 17.4.56, bit 0x0020).
_LOOK_FIRST_ROW = 0x0020


def check_docx(content: BinaryIO, limits: Limits) -> Failure | None:
    """Why the file must not be opened: ``encrypted``, ``too-large`` or ``malformed``; None when it may."""
    if content.read(len(ole.MAGIC)) == ole.MAGIC:
        return ole.refusal(content) or Failure(FailureCode.MALFORMED, "The file is not a DOCX package.")
    return zipgate.inspect(content, zipgate.InflateLimits(limits.max_inflated_bytes, limits.max_inflate_ratio))


def read_docx(content: BinaryIO, limits: Limits) -> WindowText | Failure:
    """The document's body as blocks, and its title (its property, else its title paragraph)."""
    refused = check_docx(content, limits)
    if refused is not None:
        return refused
    content.seek(0)
    try:
        document = docx.Document(content)
        body = document.element.body
        styles = Styles(_root(document, RELATIONSHIP_TYPE.STYLES))
        numbering = Numbering(_root(document, RELATIONSHIP_TYPE.NUMBERING), styles)
        title = document.core_properties.title
    except _UNREADABLE:
        return Failure(FailureCode.MALFORMED, "The file is not a readable Word document.")
    if body is None:
        return Failure(FailureCode.MALFORMED, "The Word document has no body.")
    sink = BlockSink(limits)
    reader = _Reader(sink, styles, numbering)
    reader.body(body)
    return sink.window(title or reader.title)


def _root(document: Document, relationship: str) -> _Element | None:
    try:
        part = document.part.part_related_by(relationship)
    except KeyError:
        return None
    return part.element if isinstance(part, XmlPart) else None


class _Reader:
    """Walks block-level elements in order."""

    def __init__(self, sink: BlockSink, styles: Styles, numbering: Numbering) -> None:
        self._sink = sink
        self._styles = styles
        self._numbering = numbering
        self._carried: list[Text] = []
        self.title: str | None = None

    def body(self, container: _Element) -> None:
        for element in container:
            if self._sink.full:
                return
            if element.tag == W + "p":
                self._paragraph(element)
            elif element.tag == W + "tbl":
                self._table(element)
            elif element.tag == W + "sdt":
                for content in element.iterfind(W + "sdtContent"):
                    self.body(content)
            elif element.tag in _WRAPPERS:
                self.body(element)

    def _paragraph(self, element: _Element) -> None:
        text = self._text(element)
        properties = element.find(W + "pPr")
        if properties is not None and properties.find(f"{W}rPr/{W}del") is not None:
            # The paragraph's end was deleted: it runs on into the next one.
            self._carried.append(text)
            return
        visible = "".join(each.visible for each in (*self._carried, text))
        hidden = "".join(each.hidden for each in (*self._carried, text))
        boxes = [box for each in (*self._carried, text) for box in each.boxes]
        self._carried.clear()
        self._sink.add(self._block(properties, visible))
        self._sink.add(Block(BlockKind.PARAGRAPH, hidden, hidden=True))
        for box in boxes:
            self.body(box)

    def _block(self, properties: _Element | None, text: str) -> Block:
        style_id = value(properties, W + "pStyle")
        place = self._numbering.place(properties, style_id)
        level = self._styles.heading_level(style_id, number(value(properties, W + "outlineLvl")))
        if level is not None:
            text = " ".join(text.split())
            if self.title is None and text:
                self.title = text
            if place is not None and text and place.marker not in ("", "-"):
                text = f"{place.marker} {text}"
            return Block(BlockKind.HEADING, text, level=level)
        if place is not None and place.marker:
            return Block(BlockKind.LIST_ITEM, text, level=place.depth, marker=place.marker)
        if self._styles.name(style_id) == "caption":
            return Block(BlockKind.CAPTION, text)
        return Block(BlockKind.PARAGRAPH, text)

    def _text(self, paragraph: _Element) -> Text:
        return paragraph_text(paragraph, self._styles)

    def _table(self, element: _Element) -> None:
        rows = [row for row in _descend(element, W + "tr") if row.find(f"{W}trPr/{W}del") is None]
        cells = [list(_descend(row, W + "tc")) for row in rows[:2]]
        if len(rows) == 1 and len(cells[0]) == 1:
            # A single cell is a frame around text, not a table.
            self.body(cells[0][0])
            return
        builder = GridBuilder(self._sink)
        for row in rows:
            builder.next_row()
            builder.skip(number(value(row.find(W + "trPr"), W + "gridBefore")) or 0)
            for cell in _descend(row, W + "tc"):
                self._cell(cell, builder)
        self._sink.add_table(Block(BlockKind.TABLE, ""), _finished(builder, element, rows))

    def _cell(self, cell: _Element, builder: GridBuilder) -> None:
        properties = cell.find(W + "tcPr")
        span = number(value(properties, W + "gridSpan")) or 1
        merge = value(properties, W + "vMerge")
        if merge is not None and merge != "restart" and builder.extend_above(span):
            return
        builder.place(clean_text(self._cell_text(cell)).strip(), column_span=span)

    def _cell_text(self, cell: _Element) -> str:
        lines: list[str] = []
        for element in _descend(cell, W + "p", W + "tbl"):
            if element.tag == W + "tbl":
                for row in _descend(element, W + "tr"):
                    inner = (self._cell_text(each) for each in _descend(row, W + "tc"))
                    lines.append(" ".join(filter(None, inner)))
                continue
            text = self._text(element)
            properties = element.find(W + "pPr")
            place = self._numbering.place(properties, value(properties, W + "pStyle"))
            marker = f"{place.marker} " if place is not None and place.marker and text.visible.strip() else ""
            lines.append(marker + text.visible)
            lines.extend(self._cell_text(box) for box in text.boxes)
        return "\n".join(filter(None, lines))


def _finished(builder: GridBuilder, element: _Element, rows: list[_Element]) -> Table:
    marked = 0
    for row in rows:
        if not is_on(row.find(W + "trPr"), W + "tblHeader"):
            break
        marked += 1
    if marked == 0 and len(rows) > 1 and _first_row_is_header(element):
        marked = 1
    return builder.table(header_rows=marked if marked < len(rows) else 0)


def _first_row_is_header(table: _Element) -> bool:
    look = table.find(f"{W}tblPr/{W}tblLook")
    if look is None:
        return True
    named = look.get(W + "firstRow")
    if named is not None:
        return named.lower() in ("1", "true", "on")
    try:
        return bool(int(look.get(W + "val", "0"), 16) & _LOOK_FIRST_ROW)
    except ValueError:
        return True


def _descend(container: _Element, *wanted: str) -> list[_Element]:
    """Children of these kinds, looking through content controls and tracked insertions."""
    found: list[_Element] = []
    for element in container:
        if element.tag in wanted:
            found.append(element)
        elif element.tag == W + "sdt" or element.tag in _WRAPPERS:
            found.extend(_descend(element, *wanted))
    return found
