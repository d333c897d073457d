"""What a file really is, from its bytes: headers, container rules, libmagic for images and sound, characters for text.

Bounded reads only: the first 64 KiB, the end of a zip archive and one small part of it, the directory of a
compound file.
"""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from types import MappingProxyType
from typing import BinaryIO

import magic
from lxml import etree

from pipeline.engines import media, ole, zipgate
from pipeline.engines.documents.charset import has_mark, is_utf8
from pipeline.engines.media import MediaType
from pipeline.errors import Failure, FailureCode

HEAD_BYTES = 64 * 1024
_PDF_MAGIC = b"%PDF-"
# Readers look for a PDF's header this far in; a file that has it there and not at 0 is something else too.
_PDF_HEADER_WITHIN = 1024
_ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
_RTF_MAGIC = b"{\\rtf"
_MAX_PART_BYTES = 1024 * 1024
_CONTENT_TYPES = "[Content_Types].xml"
_OVERRIDE = "{http://schemas.openxmlformats.org/package/2006/content-types}Override"
# The content type of a package's main part says exactly what the package is.
_MAIN_PARTS = MappingProxyType(
    {
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml": media.DOCX,
        "application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml": media.PPTX,
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml": media.XLSX,
    }
)
_MACROS = re.compile(r"application/vnd\.ms-\w+\.\w+\.macroEnabled\.main\+xml", re.IGNORECASE)
# By the archive's member named mimetype: what else must be there.
_MIMETYPE_PARTS = MappingProxyType(
    {
        media.ODT: "content.xml",
        media.ODP: "content.xml",
        media.ODS: "content.xml",
        media.EPUB: "META-INF/container.xml",
    }
)
# Kinds that are not accepted, in words.
_OTHER_LABELS = MappingProxyType(
    {
        "application/zip": "a zip archive",
        "application/gzip": "a gzip archive",
        "application/x-7z-compressed": "a 7-Zip archive",
        "application/x-rar": "a RAR archive",
        "application/x-tar": "a tar archive",
        "application/x-dosexec": "a Windows program",
        "application/vnd.microsoft.portable-executable": "a Windows program",
        "application/x-executable": "a program",
        "application/x-pie-executable": "a program",
        "application/x-sharedlib": "a program library",
        "application/x-mach-binary": "a program",
        "image/svg+xml": "an SVG drawing",
        "image/x-icon": "an icon",
        "image/vnd.adobe.photoshop": "a Photoshop image",
        "image/avif": "an AVIF image",
        "image/jp2": "a JPEG 2000 image",
    }
)
_UNKNOWN = "a file of an unknown kind"
# Bytes that text does not hold: C0 controls but for bell, backspace, tab, line ends and escape.
_CONTROLS = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
# A stray control or NUL in a text is cleaned; many make it something else.
_STRAY_CONTROLS = 2
_STRAY_SHARE = 0.001
_HTML_TAG = re.compile(
    r"<(?:!doctype\s+html|html|head|body|title|meta|div|p|span|a|h[1-6]|ul|ol|li|table|tr|td|br|img|main|article|section"
    r"|b|i|em|strong|pre|blockquote|form|header|footer|nav|center|font|hr|dl|link|script|style)\b[^<>]*>",
    re.IGNORECASE,
)
_HEADER_LINE = re.compile(r"\A(?:[\w-]+:[^\n]*\n(?:[ \t][^\n]*\n)*)*?(?:from|date|message-id|received):", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Content:
    """What the bytes are. ``accepted`` is None for a kind not on the list and for text, which has many names."""

    label: str
    accepted: MediaType | None = None
    text: str | None = None


def look(content: BinaryIO) -> Content | Failure:
    """What the file is by its bytes alone; ``malformed``, ``encrypted`` or ``too-large`` where that shows already."""
    content.seek(0)
    head = content.read(HEAD_BYTES)
    if not head:
        return Failure(FailureCode.MALFORMED, "The file is empty.")
    if head.startswith(_ZIP_MAGICS):
        return _look_into_zip(content)
    if head.startswith(ole.MAGIC):
        return _look_into_compound(content)
    found = _plain_kind(head)
    if isinstance(found, Failure):
        return found
    if zipgate.ends_as_zip(content):
        return Failure(FailureCode.MALFORMED, f"The file is {found.label} and a zip archive at once.")
    return found


def has_html_tags(text: str) -> bool:
    """Whether a text is an HTML page or a piece of one."""
    return _HTML_TAG.search(text) is not None


def has_mail_headers(text: str) -> bool:
    """Whether a text begins with an e-mail message's headers."""
    return _HEADER_LINE.match(text.replace("\r\n", "\n")) is not None


def _plain_kind(head: bytes) -> Content | Failure:
    """The kind of a file that is no container."""
    if head.startswith(_PDF_MAGIC):
        return _accepted(media.PDF)
    if head.startswith(_RTF_MAGIC):
        return _accepted(media.RTF)
    text = _as_text(head)
    if text is not None:
        return Content("a text file", text=text)
    at = head.find(_PDF_MAGIC, 0, _PDF_HEADER_WITHIN)
    if at > 0:
        return Failure(FailureCode.MALFORMED, f"The PDF begins at byte {at}; something else stands before it.")
    return _by_libmagic(head)


def _accepted(name: str) -> Content:
    found = media.BY_NAME[name]
    return Content(found.label, found)


def _by_libmagic(head: bytes) -> Content:
    try:
        name = magic.Magic(mime=True).from_buffer(head)
    except magic.MagicException:
        return Content(_UNKNOWN)
    found = media.find(name)
    # Text kinds are decided by characters; libmagic guesses at them.
    if found is not None and found.family in (media.Family.IMAGE, media.Family.SOUND):
        return Content(found.label, found)
    return Content(_OTHER_LABELS.get(name, _UNKNOWN))


def _as_text(head: bytes) -> str | None:
    """The beginning as text; None for binary content."""
    marked = has_mark(head)
    if marked is not None:
        return head.decode(marked, "replace").lstrip("\ufeff")
    controls = len(_CONTROLS.findall(head))
    stray = max(_STRAY_CONTROLS, len(head) * _STRAY_SHARE)
    text = head.decode("utf-8", "replace")
    # Half a surrogate pair or a cut character makes no binary file of a text; random bytes are damaged all over.
    if is_utf8(head) or (text.count("\ufffd") <= stray and text.count("\ufffd") * 20 < len(text)):
        return text if controls <= stray else None
    return head.decode("cp1252", "replace") if controls == 0 and not _is_known_binary(head) else None


def _is_known_binary(head: bytes) -> bool:
    """Whether bytes without controls that are no UTF-8 are something libmagic knows: a very small image, say."""
    return _by_libmagic(head).label != _UNKNOWN


def _look_into_compound(content: BinaryIO) -> Content | Failure:
    found = ole.kind(content)
    if isinstance(found, Failure):
        return found
    return _accepted(found) if found is not None else Content(_UNKNOWN)


def _look_into_zip(content: BinaryIO) -> Content | Failure:
    refused = zipgate.directory_problem(content)
    if refused is not None:
        return refused
    try:
        with zipfile.ZipFile(content) as archive:
            names = frozenset(archive.namelist())
            if any(member.flag_bits & zipgate.ENCRYPTED for member in archive.infolist()):
                return Failure(FailureCode.ENCRYPTED, "The document's parts are protected with a password.")
            if _CONTENT_TYPES in names:
                return _package(_part(archive, _CONTENT_TYPES), names)
            if "mimetype" in names:
                return _by_mimetype_part(_part(archive, "mimetype"), names)
    except zipgate.DAMAGE:
        return Failure(FailureCode.MALFORMED, "The file is a damaged zip archive.")
    return Content(_OTHER_LABELS["application/zip"])


def _part(archive: zipfile.ZipFile, name: str) -> bytes:
    """The beginning of a member; a longer one than fits is damage."""
    with archive.open(name) as part:
        data = part.read(_MAX_PART_BYTES + 1)
    if len(data) > _MAX_PART_BYTES:
        raise zipfile.BadZipFile
    return data


def _package(content_types: bytes, names: frozenset[str]) -> Content | Failure:
    """An Office Open XML package, by its main part, which must be there."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(content_types, parser)
    except etree.XMLSyntaxError:
        return Failure(FailureCode.MALFORMED, "The document's list of parts is damaged.")
    for override in root.iter(_OVERRIDE):
        content_type = override.get("ContentType", "")
        found = _MAIN_PARTS.get(content_type)
        if found is not None:
            if override.get("PartName", "").lstrip("/") in names:
                return _accepted(found)
            return Failure(FailureCode.MALFORMED, "The document's main part is missing.")
        if _MACROS.fullmatch(content_type):
            return Content("an Office document with macros")
    return Content("an Office package of another kind")


def _by_mimetype_part(mimetype: bytes, names: frozenset[str]) -> Content | Failure:
    name = mimetype.decode("ascii", "replace").strip()
    needed = _MIMETYPE_PARTS.get(name)
    if needed is None:
        return Content(_OTHER_LABELS["application/zip"])
    if needed not in names:
        return Failure(FailureCode.MALFORMED, "The document's main part is missing.")
    return _accepted(name)
