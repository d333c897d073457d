"""Metadata filters as conditions: on a source ``s`` where they can be, else on a chunk ``c`` of a source ``p``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pipeline.types import Json, SearchFilters

_LARGEST_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions to be joined by AND, and the values they bind."""

    on_source: tuple[str, ...]
    on_chunk: tuple[str, ...]
    values: dict[str, Any]


def is_storable(text: str) -> bool:
    """Whether Postgres could hold this text; what it could not hold, it does not hold."""
    if "\x00" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def conditions(filters: SearchFilters) -> Conditions:
    """What the filters ask of a row. A filter that no stored row can meet becomes ``false``, never an error.

    A document's date is its own, else the moment it came in (publication would move it with every new ingestion);
    both ends are included. A language matches itself and its regions (``pt`` finds ``pt-BR``).
    """
    asked = [*_of_source(filters), *_of_chunk(filters)]
    return Conditions(
        on_source=tuple(condition for on_source, condition, _ in asked if on_source),
        on_chunk=tuple(condition for on_source, condition, _ in asked if not on_source),
        values={name: value for _, _, values in asked for name, value in values.items()},
    )


_Asked = list[tuple[bool, str, dict[str, Any]]]
_NEVER = (True, "false", dict[str, Any]())


def _of_source(filters: SearchFilters) -> _Asked:
    asked: _Asked = []
    if filters.source_ids:
        asked.append((True, "s.source_id = ANY(:filter_sources)", {"filter_sources": list(filters.source_ids)}))
    if filters.media_types:
        types = [name for name in filters.media_types if is_storable(name)]
        asked.append((True, "s.media_type = ANY(CAST(:filter_types AS text[]))", {"filter_types": types}))
    if filters.date_from is not None:
        asked.append((True, f"{_DATE} >= :filter_from", {"filter_from": filters.date_from}))
    if filters.date_to is not None:
        asked.append((True, f"{_DATE} <= :filter_to", {"filter_to": filters.date_to}))
    return asked


_DATE = "coalesce(s.document_date, s.created_at)"


def _of_chunk(filters: SearchFilters) -> _Asked:
    asked: _Asked = []
    if filters.page is not None:
        possible = 1 <= filters.page <= _LARGEST_INT
        asked.append((False, ":filter_page = ANY(c.pages)", {"filter_page": filters.page}) if possible else _NEVER)
    if filters.language is not None:
        language = filters.language.lower()
        asked.append((False, _LANGUAGE, {"filter_language": language}) if is_storable(language) else _NEVER)
    if filters.metadata:
        metadata = _as_json(filters.metadata)
        asked.append((False, _METADATA, {"filter_metadata": metadata}) if metadata is not None else _NEVER)
    return asked


_LANGUAGE = "starts_with(lower(coalesce(c.attributes ->> 'language', p.language, '')) || '-', :filter_language || '-')"
_METADATA = "(p.attributes || c.attributes) @> CAST(:filter_metadata AS jsonb)"


def _as_json(metadata: dict[str, Json]) -> str | None:
    """The filter as JSON text, None when it holds what jsonb cannot."""
    try:
        written = json.dumps(metadata, ensure_ascii=False, allow_nan=False)
    except ValueError:
        return None
    return written if is_storable(written) and "\\u0000" not in written else None
