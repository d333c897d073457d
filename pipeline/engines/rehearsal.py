"""What a sandbox server does once before it serves: read small documents of our own.

Parsers build tables, load databases and compile patterns on first use. A child is forked for every document, so what
the server has done before is done once, and what it has not is done again for each (measured: 37 ms for a DOCX).
"""

from __future__ import annotations

import io

import docx
from PIL import Image

from pipeline.engines import media, verdict
from pipeline.engines.documents import jobs as documents
from pipeline.engines.pdf import jobs as pdf
from pipeline.types import Json

_MARKDOWN = b"# Head\n\nSome *text*, a [link](a).\n\n- one\n- two\n\n| a | b |\n|-|-|\n| 1 | 2 |\n\n```py\nx = 1\n```\n"
_HTML = b"<html><head><title>t</title></head><body><h1>Head</h1><p>Text</p><ul><li>one</li></ul></body></html>"
_CSV = b"name;price\nbolt;1,5\nnut;2,5\n"
# One page with one line of text, as small as a PDF can be; readers rebuild the missing cross-reference table.
_PDF = (
    b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Contents 4 0 R/Resources<</Font<</F<</Type/Font"
    b"/Subtype/Type1/BaseFont/Helvetica>>>>>>>>endobj\n4 0 obj<</Length 30>>stream\nBT /F 9 Tf 9 9 Td (word) Tj ET  \n"
    b"endstream endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
)
_LIMITS: dict[str, Json] = {
    "max_pages": 1,
    "max_blocks": 100,
    "max_text_bytes": 10_000,
    "max_cells": 100,
    "max_inflated_bytes": 10_000_000,
    "max_inflate_ratio": 200,
    "max_image_pixels": 10_000,
}


def inspector() -> None:
    for body, name in ((_MARKDOWN, "a.md"), (_HTML, "a.html"), (_CSV, "a.csv"), (_word(), "a.docx"), (_png(), "a.png")):
        verdict.job(io.BytesIO(body), {"declared": "", "filename": name})


def readers() -> None:
    samples = {media.MARKDOWN: _MARKDOWN, media.HTML: _HTML, media.CSV: _CSV, media.DOCX: _word(), "image/png": _png()}
    for media_type, body in samples.items():
        arguments: dict[str, Json] = {**_LIMITS, "media_type": media_type, "first_page": 1, "last_page": 1}
        documents.profile(io.BytesIO(body), arguments)
        documents.read(io.BytesIO(body), arguments)


def pdf_reader() -> None:
    arguments: dict[str, Json] = {**_LIMITS, "first_page": 1, "last_page": 1}
    pdf.profile(io.BytesIO(_PDF), arguments)
    pdf.read(io.BytesIO(_PDF), arguments)


def _word() -> bytes:
    document = docx.Document()
    document.add_heading("Head", 1)
    document.add_paragraph("Text", style="List Bullet")
    document.add_table(1, 2).cell(0, 0).text = "cell"
    target = io.BytesIO()
    document.save(target)
    return target.getvalue()


def _png() -> bytes:
    target = io.BytesIO()
    Image.new("L", (8, 8), 255).save(target, "PNG")
    return target.getvalue()
