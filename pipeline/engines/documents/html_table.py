"""Tables of an HTML page: those that hold data; those that only arrange the page are read as running text."""

from __future__ import annotations

from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from pipeline.engines.documents import html_rules as rules
from pipeline.engines.documents.grid import GridBuilder
from pipeline.engines.documents.sink import BlockSink
from pipeline.stages.clean import clean_text
from pipeline.types import Table


@dataclass(frozen=True, slots=True)
class FoundTable:
    table: Table
    caption: str


def read_table(node: LexborNode, sink: BlockSink) -> FoundTable | None:
    """The table under a ``table`` element; None when it is there for layout.

    Layout is: declared as presentation, a single cell, or tables nested in it while nothing marks it as data.
    """
    if (node.attributes.get("role") or "").lower() in ("presentation", "none"):
        return None
    builder = GridBuilder(sink)
    caption = ""
    nests = marked = False
    for element, in_head in _parts(node):
        if element.tag == "tr":
            builder.next_row()
        elif element.tag == "caption":
            caption = clean_text(rules.flat_text(element))
            marked = True
        else:
            is_header = in_head or element.tag == "th"
            marked = marked or is_header
            nests = nests or element.css_first("table") is not None
            builder.place(
                clean_text(rules.flat_text(element)),
                column_span=rules.whole_number(element, "colspan", 1),
                row_span=rules.whole_number(element, "rowspan", 1),
                header=is_header,
            )
    if builder.cells <= 1 or (nests and not marked):
        return None
    return FoundTable(builder.table(), caption)


def _parts(table: LexborNode) -> list[tuple[LexborNode, bool]]:
    """The table's own caption, rows and cells in order (not those of tables inside), and whether in its head."""
    found: list[tuple[LexborNode, bool]] = []
    for part in rules.children(table):
        if not part.is_element_node or not rules.is_content(part, in_section=True):
            continue
        if part.tag == "caption":
            found.append((part, False))
        for row in rules.children(part) if part.tag in ("thead", "tbody", "tfoot") else ():
            if row.tag != "tr" or not rules.is_content(row, in_section=True):
                continue
            found.append((row, False))
            found.extend(
                (cell, part.tag == "thead")
                for cell in rules.children(row)
                if cell.tag in ("td", "th") and rules.is_content(cell, in_section=True)
            )
    return found
