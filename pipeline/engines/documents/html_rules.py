"""What HTML elements mean for reading: which are content, which break a line, which stand for text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborNode

HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
SECTIONS = frozenset({"article", "main", "section"})
BLOCKS = (
    HEADINGS
    | SECTIONS
    | frozenset({"address", "blockquote", "body", "caption", "center", "dd", "details", "dialog", "div", "dl", "dt"})
    | frozenset(
        {"fieldset", "figcaption", "figure", "form", "header", "hgroup", "hr", "legend", "li", "menu", "ol", "p"}
    )
    | frozenset({"ol", "p", "summary", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"})
)
# Elements that are not content of the page.
_NEVER = (
    frozenset({"script", "style", "template", "noscript", "head", "title", "meta", "link", "base", "rp", "rt"})
    | frozenset({"nav", "footer", "aside"})
    | frozenset({"iframe", "frame", "frameset", "noframes", "object", "embed", "applet", "map", "area"})
    | frozenset({"video", "audio", "canvas", "svg"})
    | frozenset({"select", "datalist", "button", "input", "textarea", "progress", "meter"})
)
_ROLES = frozenset({"navigation", "banner", "contentinfo", "complementary", "search", "menu", "menubar", "toolbar"})
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)", re.IGNORECASE)
INLINE_VALUES = frozenset({"br", "img", "wbr", "math"})

# Stands for a line break while white space is collapsed; clean text holds no vertical tab.
LINE_BREAK = "\v"
_SPACES = re.compile(r"[ \t\n\r\f]+")
_BREAKS = re.compile(r" *\v *")
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"))
_ROMAN_SMALL = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def is_content(node: LexborNode, *, in_section: bool) -> bool:
    """Whether a reader of the page sees the element and it is not furniture.

    A ``header`` is the page's outside sections and the section's own inside one (``in_section``).
    """
    tag = node.tag
    if tag in _NEVER or (tag == "header" and not in_section):
        return False
    attributes = node.attributes
    if not attributes:
        return tag != "dialog"
    if tag == "dialog" and "open" not in attributes:
        return False
    if "hidden" in attributes or (attributes.get("aria-hidden") or "").strip().lower() == "true":
        return False
    if (attributes.get("role") or "").strip().lower() in _ROLES:
        return False
    style = attributes.get("style")
    return style is None or _HIDDEN_STYLE.search(style) is None


def inline_value(node: LexborNode) -> str:
    """The text that an element without text of its own stands for."""
    match node.tag:
        case "br":
            return LINE_BREAK
        case "img":
            return f" {node.attributes.get('alt') or ''} "
        case "math":
            return node.attributes.get("alttext") or raw_text(node)
        case _:
            return ""


def collapse(text: str) -> str:
    """White space as a browser shows it outside ``pre``: one space, line breaks kept."""
    return _BREAKS.sub("\n", _SPACES.sub(" ", text)).strip(" \n")


def children(node: LexborNode) -> Iterator[LexborNode]:
    child = node.child
    while child is not None:
        yield child
        child = child.next


def walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Every content node under ``root`` in document order, without recursion; True when entered, False when left."""
    open_elements: list[LexborNode] = []
    node = root.child
    while node is not None or open_elements:
        if node is None:
            node = open_elements.pop()
            yield node, False
            node = node.next
        elif node.is_element_node and is_content(node, in_section=True):
            yield node, True
            open_elements.append(node)
            node = node.child
        else:
            if node.is_text_node:
                yield node, True
            node = node.next


def raw_text(node: LexborNode) -> str:
    """The text below an element as it stands in the source, ``br`` as a line end."""
    parts: list[str] = []
    for each, entered in walk(node):
        if entered:
            parts.append("\n" if each.tag == "br" else (each.text_content or "") if each.is_text_node else "")
    return "".join(parts)


def flat_text(node: LexborNode) -> str:
    """The text below an element in lines, one for each block in it."""
    parts: list[str] = []
    for each, entered in walk(node):
        if each.is_text_node:
            parts.append(each.text_content or "")
        elif each.tag in INLINE_VALUES:
            parts.append(inline_value(each) if entered and each.tag != "math" else "")
        elif each.tag in ("td", "th"):
            parts.append(" " if entered else "")
        elif each.tag in BLOCKS:
            parts.append(LINE_BREAK)
    return re.sub(r"\n+", "\n", collapse("".join(parts)))


def whole_number(node: LexborNode, attribute: str, default: int) -> int:
    """The attribute as an integer of at most nine digits, else ``default``."""
    value = (node.attributes.get(attribute) or "").strip()
    return int(value) if re.fullmatch(r"[+-]?[0-9]{1,9}", value) else default


def numeral(number: int, style: str) -> str:
    """A number as a list shows it: ``style`` is HTML's own ``1``, ``a``, ``A``, ``i`` or ``I``."""
    if style in ("a", "A") and number > 0:
        letters = ""
        while number:
            number, place = divmod(number - 1, 26)
            letters = chr(ord("a") + place) + letters
        return letters.upper() if style == "A" else letters
    if style in ("i", "I") and 0 < number < 4000:
        roman = ""
        for value, sign in _ROMAN + _ROMAN_SMALL:
            count, number = divmod(number, value)
            roman += sign * count
        return roman.upper() if style == "I" else roman
    return str(number)
