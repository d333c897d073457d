"""Whether a file is what its name and its sender say: content, declared type and extension must agree."""

from __future__ import annotations

from typing import BinaryIO

from pydantic import TypeAdapter

from pipeline.engines import media
from pipeline.engines.media import Family, MediaType
from pipeline.engines.sniff import Content, has_html_tags, has_mail_headers, look
from pipeline.errors import Failure, FailureCode
from pipeline.types import Json

_ANSWER: TypeAdapter[str | Failure] = TypeAdapter(str | Failure)
# What text may call itself. A plain text file may carry any of these names, and a table or page is text too.
_TEXTUAL = frozenset({Family.TEXT, Family.MAIL})


def job(content: BinaryIO, arguments: dict[str, Json]) -> bytes:
    """The sandbox job ``file.inspect``. Arguments: ``declared``, ``filename``."""
    return _ANSWER.dump_json(inspect(content, str(arguments["declared"]), str(arguments["filename"])))


def inspect(content: BinaryIO, declared: str, filename: str) -> str | Failure:
    """The accepted media type of the content, or why it is refused.

    Without a declared type (or with ``application/octet-stream``) the extension and the content decide.
    """
    extension = media.extension_of(filename)
    claimed = media.BY_EXTENSION.get(extension)
    name = media.normalise(declared)
    if name == media.XLS and claimed is not None and claimed.name in (media.CSV, media.TSV):
        # Windows browsers declare CSV as the program that opens it.
        name = ""
    stated = media.BY_NAME.get(name)
    if name and stated is None:
        return _unsupported(f"{name} is not a supported type.")
    found = look(content)
    if isinstance(found, Failure):
        return found
    if found.text is not None:
        return _as_text(found.text, filename, stated, claimed, extension)
    return _as_binary(found, filename, stated, claimed)


def _as_text(
    text: str, filename: str, stated: MediaType | None, claimed: MediaType | None, extension: str
) -> str | Failure:
    for other in (stated, claimed):
        if other is not None and other.family not in _TEXTUAL:
            return _mismatch(filename, _kind_of_text(text), other)
    specific = stated if stated is not None and stated.name != media.PLAIN else None
    chosen = specific or claimed or stated
    if chosen is None:
        if extension:
            return _unsupported(f".{extension} is not a supported file type.")
        return media.PLAIN
    if chosen.name == media.HTML and not has_html_tags(text):
        return _unsupported(f"{filename} has no HTML tags: it is a text file, not an HTML page.")
    if chosen.name == media.EML and not has_mail_headers(text):
        return _mismatch(filename, _kind_of_text(text), chosen)
    return chosen.name


def _kind_of_text(text: str) -> str:
    return "an HTML page" if has_html_tags(text) else "a text file"


def _as_binary(found: Content, filename: str, stated: MediaType | None, claimed: MediaType | None) -> str | Failure:
    accepted = found.accepted
    if accepted is None:
        other = stated or claimed
        if other is not None:
            return _mismatch(filename, found.label, other)
        return _unsupported(f"{filename} is {found.label}, which is not supported.")
    if accepted.family is Family.SOUND:
        # One container holds sound or pictures; which it is does not show at its beginning.
        named = stated or claimed or accepted
        return named.name if named.family is Family.SOUND else _mismatch(filename, accepted.label, named)
    if stated is not None and stated.name != accepted.name:
        return _mismatch(filename, accepted.label, stated)
    if claimed is not None and claimed.family is not accepted.family:
        return _mismatch(filename, accepted.label, claimed)
    return accepted.name


def _mismatch(filename: str, label: str, other: MediaType) -> Failure:
    return _unsupported(f"{filename} is {label}, not {other.label}.")


def _unsupported(detail: str) -> Failure:
    return Failure(FailureCode.UNSUPPORTED_TYPE, detail)
