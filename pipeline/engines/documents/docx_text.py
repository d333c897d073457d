"""The text of one Word paragraph, run by run: what is shown, what is hidden, and the text boxes anchored in it."""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml.etree import _Element

from pipeline.engines.documents.docx_styles import Styles, W, is_on, value

_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
# Word writes a hyphen that does not break as an element of its own; in text it has a character of its own.
_NO_BREAK_HYPHEN = "\u2011"
_FIXED = {W + "tab": "\t", W + "ptab": "\t", W + "cr": "\n", W + "noBreakHyphen": _NO_BREAK_HYPHEN}
_SKIPPED = frozenset(
    W + name for name in ("pPr", "rPr", "del", "moveFrom", "delText", "instrText", "delInstrText", "rt", "rubyPr")
)


@dataclass(slots=True)
class Text:
    """A paragraph's shown and hidden text; ``boxes`` are the contents of its text boxes."""

    visible: str = ""
    hidden: str = ""
    boxes: list[_Element] = field(default_factory=list)


def paragraph_text(paragraph: _Element, styles: Styles) -> Text:
    """The text of a paragraph with its tracked changes accepted."""
    properties = paragraph.find(W + "pPr")
    collector = _Collector(styles)
    collector.collect(paragraph, hidden=styles.is_hidden(value(properties, W + "pStyle")))
    return Text("".join(collector.visible), "".join(collector.hidden), collector.boxes)


class _Collector:
    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self.visible: list[str] = []
        self.hidden: list[str] = []
        self.boxes: list[_Element] = []

    def collect(self, element: _Element, *, hidden: bool) -> None:
        for child in element:
            tag = child.tag
            if not isinstance(tag, str) or tag in _SKIPPED:
                continue
            if tag in (W + "t", _M + "t"):
                self._append(child.text or "", hidden)
            elif tag in _FIXED:
                self._append(_FIXED[tag], hidden)
            elif tag == W + "br":
                self._append("\n" if child.get(W + "type", "textWrapping") == "textWrapping" else "", hidden)
            elif tag == W + "r":
                self.collect(child, hidden=self._run_hidden(child, inherited=hidden))
            elif tag == _MC + "AlternateContent":
                self._alternative(child, hidden=hidden)
            elif tag in (W + "drawing", W + "pict", W + "object"):
                self.boxes.extend(_outermost_boxes(child))
            else:
                self.collect(child, hidden=hidden)

    def _append(self, text: str, hidden: bool) -> None:
        (self.hidden if hidden else self.visible).append(text)

    def _run_hidden(self, run: _Element, *, inherited: bool) -> bool:
        properties = run.find(W + "rPr")
        own = is_on(properties, W + "vanish")
        if own is not None:
            return own
        return inherited or self._styles.is_hidden(value(properties, W + "rStyle"))

    def _alternative(self, element: _Element, *, hidden: bool) -> None:
        """The same content twice, for new and old readers: only one of them is text."""
        chosen = element.find(_MC + "Choice")
        if chosen is None:
            chosen = element.find(_MC + "Fallback")
        if chosen is not None:
            self.collect(chosen, hidden=hidden)


def _outermost_boxes(drawing: _Element) -> list[_Element]:
    """The text boxes of a drawing, not those inside another of them (they are found when that is read)."""
    found: list[_Element] = []
    waiting = list(drawing)
    while waiting:
        element = waiting.pop(0)
        if element.tag == W + "txbxContent":
            found.append(element)
        elif element.tag == _MC + "AlternateContent":
            chosen = element.find(_MC + "Choice")
            waiting[:0] = list(chosen if chosen is not None else element)
        else:
            waiting[:0] = list(element)
    return found
