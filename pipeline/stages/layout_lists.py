"""List items: telling a marker from text that only looks like one."""

from __future__ import annotations

import re
from typing import NamedTuple

# What symbol fonts draw as bullets has no meaning outside them; all of it reads as one.
_BULLET = re.compile(r"[•‣◦▪▫●○◆◇■□❑❒➢➤►▶▸✓✔❖∙·⁃–—*\-»\ue000-\uf8ff][ \t]+(?=\S)")
_NUMBER = re.compile(r"\(?(?P<label>\d{1,3}|[A-Za-z]|[ivx]{2,5}|[IVX]{2,5})[.)][ \t]+(?=\S)")
_FIRST_LABELS = frozenset({"1", "a", "A", "i", "I"})
_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv")


class Marker(NamedTuple):
    """A marker as shown, the label inside it (empty for a bullet) and how many characters of the row it takes."""

    shown: str
    label: str
    length: int


def marker_of(text: str) -> Marker | None:
    """The marker a row begins with, if it begins with something that may be one."""
    if match := _BULLET.match(text):
        sign = match.group().strip()
        return Marker("•" if sign >= "\ue000" else sign, "", match.end())
    if match := _NUMBER.match(text):
        return Marker(match.group().strip(), match["label"], match.end())
    return None


def follows(label: str, before: str | None) -> bool:
    """Whether an item labelled ``label`` may come after ``before``, or begin a list where nothing came before."""
    if before is None:
        return label in _FIRST_LABELS
    if label.isdigit() and before.isdigit():
        return int(label) == int(before) + 1
    if (
        label.lower() in _ROMAN
        and before.lower() in _ROMAN
        and _ROMAN.index(label.lower()) == (_ROMAN.index(before.lower()) + 1)
    ):
        return True
    return len(label) == len(before) == 1 and ord(label) == ord(before) + 1
