"""Word documents made of raw body XML, so that a test shows exactly what a file holds."""

from __future__ import annotations

import io
import re
import zipfile

import docx
import docx.oxml
from docx.oxml.ns import nsdecls

from tests.inputs.zips import archive, repacked

_NAMESPACES = nsdecls("w", "wp", "r", "a", "m") + (
    ' xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)


def document(body: str, *, numbering: str = "", styles: str = "", title: str | None = None) -> bytes:
    """A document whose body is this XML (prefixes w, wp, a, m, mc, wps are bound).

    ``numbering`` replaces the template's list definitions, ``styles`` are added to its own.
    """
    made = docx.Document()
    root = docx.oxml.parse_xml(f"<w:body {_NAMESPACES}>{body}</w:body>")
    for element in reversed(list(root)):
        made.element.body.insert(0, element)
    if title is not None:
        made.core_properties.title = title
    for style in docx.oxml.parse_xml(f"<w:styles {_NAMESPACES}>{styles}</w:styles>"):
        made.styles.element.append(style)
    if numbering:
        part = made.part.numbering_part.element
        for element in list(part):
            part.remove(element)
        for element in docx.oxml.parse_xml(f"<w:numbering {_NAMESPACES}>{numbering}</w:numbering>"):
            part.append(element)
    buffer = io.BytesIO()
    made.save(buffer)
    return buffer.getvalue()


def paragraph(text: str, properties: str = "") -> str:
    return f'<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def bomb(megabytes: int) -> bytes:
    """A document of a few kilobytes whose body is this long."""
    body = b"<w:p><w:r><w:t>x</w:t></w:r></w:p>" * (megabytes * 1024 * 1024 // 34)
    return repacked(document(""), {"word/document.xml": _body(body)})


def laughs() -> bytes:
    """A document with entities that stand for entities that stand for …"""
    entities = b'<!ENTITY l0 "lol">' + b"".join(
        b'<!ENTITY l%d "%s">' % (level, b"&l%d;" % (level - 1) * 10) for level in range(1, 10)
    )
    text = b"<!DOCTYPE x [" + entities + b"]>" + _body(b"<w:p><w:r><w:t>&l9;</w:t></w:r></w:p>")
    return repacked(document(""), {"word/document.xml": text})


def without_main_part() -> bytes:
    """A zip archive that only says it is a Word document."""
    return archive(
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.'
            'wordprocessingml.document.main+xml"/></Types>'
        }
    )


def renamed_main_type(data: bytes, content_type: str) -> bytes:
    """The package whose main part calls itself something else."""
    types = re.sub(
        r"application/vnd\.openxmlformats-officedocument\.wordprocessingml\.document\.main\+xml",
        content_type,
        _part(data, "[Content_Types].xml"),
    )
    return repacked(data, {"[Content_Types].xml": types.encode()})


def _part(data: bytes, name: str) -> str:
    with zipfile.ZipFile(io.BytesIO(data)) as read:
        return read.read(name).decode()


def _body(content: bytes) -> bytes:
    return b"<w:document " + nsdecls("w").encode() + b"><w:body>" + content + b"</w:body></w:document>"
