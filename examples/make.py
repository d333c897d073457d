"""Writes the sample documents: ``python -m examples.make [DIRECTORY]``.

The same fonts and libraries give the same bytes: dates are fixed, noise is seeded, zip entries carry one time.
"""

from __future__ import annotations

import csv
import html
import io
import os
import random
import sys
import time
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import docx
import pypdfium2
import weasyprint
from PIL import Image, ImageDraw, ImageFont

from examples import content

# 1 March 2026, the day the price list was printed. The libraries that embed fonts read it from the environment.
PRINTED = int(os.environ.setdefault("SOURCE_DATE_EPOCH", "1772323200"))
# The earliest time a zip entry can carry.
ZIP_TIME = (1980, 1, 1, 0, 0, 0)
SCAN_DPI = 200
FONTS = Path("/usr/share/fonts/truetype/dejavu")

_STYLE = """
@page { size: A4; margin: 22mm 20mm }
@page { @bottom-center { content: "Kestrelford Pumps, page " counter(page); font-size: 8pt } }
body { font: 10.5pt/1.45 "DejaVu Sans"; color: #222 }
h1 { font-size: 20pt; margin: 0 0 6mm }
h2 { font-size: 15pt; margin: 0 0 4mm }
h3 { font-size: 12pt; margin: 6mm 0 2mm }
section + section { break-before: page }
div.line { display: flex } div.line b { width: 22mm; font-weight: normal } div.line i { flex: 1; font-style: normal }
"""


def price_list() -> bytes:
    """A PDF of four pages whose prices are lines of text, without any rule between them."""
    sections = []
    for number, (heading, introduction, parts) in enumerate(content.PRICE_PAGES):
        title = f"<h1>{content.PRICE_LIST_TITLE}</h1>" if number == 0 else ""
        tables = "".join(f"<h3>{heading}</h3>{''.join(_price(*line) for line in lines)}" for heading, lines in parts)
        sections.append(f"<section>{title}<h2>{heading}</h2><p>{introduction}</p>{tables}</section>")
    return _pdf(content.PRICE_LIST_TITLE, "".join(sections))


def _price(article: str, description: str, price: str) -> str:
    return f'<div class="line"><b>{article}</b><i>{html.escape(description)}</i><span>{price}</span></div>'


def _pdf(title: str, body: str) -> bytes:
    printed = datetime.fromtimestamp(PRINTED, UTC).isoformat()
    page = (
        f'<html lang="en"><head><title>{title}</title><meta name="dcterms.created" content="{printed}">'
        f'<meta name="dcterms.modified" content="{printed}"></head><body>{body}</body></html>'
    )
    document: bytes = weasyprint.HTML(string=page).write_pdf(stylesheets=[weasyprint.CSS(string=_STYLE)])
    return document


def commissioning_scan() -> bytes:
    """A PDF of one page that is an image: turned a little, with the grain of a scanner, and not one character."""
    lines = "".join(f"<p>{html.escape(line)}</p>" for line in content.SCAN_LINES)
    printed = _pdf(content.SCAN_TITLE, f"<h1>{content.SCAN_TITLE}</h1>{lines}")
    with pypdfium2.PdfDocument(printed) as document:
        page = document[0].render(scale=SCAN_DPI / 72).to_pil().convert("L")
    page = page.rotate(0.4, resample=Image.Resampling.BICUBIC, fillcolor=255)
    noise = random.Random(7731).randbytes(page.width * page.height)  # noqa: S311 - grain, not a secret
    grain = Image.frombytes("L", page.size, noise)
    scanned = Image.blend(page, grain, 0.08)
    day = time.gmtime(PRINTED)
    buffer = io.BytesIO()
    scanned.save(buffer, "PDF", resolution=SCAN_DPI, quality=45, creationDate=day, modDate=day, producer="")
    return buffer.getvalue()


def maintenance() -> bytes:
    """A DOCX with headings, a numbered list, a bulleted list and a table."""
    document = docx.Document()
    document.add_heading(content.MAINTENANCE_TITLE, level=1)
    document.add_paragraph(content.MAINTENANCE_INTRO)
    document.add_heading("Cleaning the strainer", level=2)
    for step in content.MAINTENANCE_STEPS:
        document.add_paragraph(step, style="List Number")
    document.add_heading("Before winter", level=2)
    for step in content.MAINTENANCE_WINTER:
        document.add_paragraph(step, style="List Bullet")
    document.add_heading("Service intervals", level=2)
    table = document.add_table(rows=0, cols=3, style="Table Grid")
    for row in content.MAINTENANCE_TABLE:
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    printed = datetime.fromtimestamp(PRINTED, UTC)
    properties = document.core_properties
    properties.title, properties.author, properties.comments = content.MAINTENANCE_TITLE, "Kestrelford Pumps", ""
    properties.created = properties.modified = printed
    buffer = io.BytesIO()
    document.save(buffer)
    return _timeless(buffer)


def _timeless(archive: io.BytesIO) -> bytes:
    """The same zip with one fixed time on every entry."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            target.writestr(zipfile.ZipInfo(entry.filename, ZIP_TIME), source.read(entry), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def error_codes() -> bytes:
    """An HTML page with a navigation bar and one section for each code."""
    sections = "\n".join(
        f'<section id="{code.lower()}">\n<h2>{code}: {name}</h2>\n<p>{html.escape(meaning)}</p>\n'
        f"<p>{html.escape(remedy)}</p>\n</section>"
        for code, name, meaning, remedy in content.ERROR_CODES
    )
    links = " ".join(f'<a href="#{code.lower()}">{code}</a>' for code, *_ in content.ERROR_CODES)
    title = content.ERROR_CODES_TITLE
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title></head>\n<body>\n'
        f"<nav>{links}</nav>\n<main>\n<h1>{title}</h1>\n{sections}\n</main>\n</body>\n</html>\n"
    ).encode()


def handbook() -> bytes:
    return content.HANDBOOK.encode()


def spare_parts() -> bytes:
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(content.SPARE_PARTS)
    return buffer.getvalue().encode()


def controller_screen() -> bytes:
    """A PNG as a settings window would look on a screen."""
    plain, bold = (ImageFont.truetype(str(FONTS / name), 22) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf"))
    height = 120 + 56 * len(content.SCREENSHOT_LINES)
    picture = Image.new("RGB", (960, height), "#f4f5f7")
    pen = ImageDraw.Draw(picture)
    pen.rectangle((0, 0, 960, 56), fill="#dfe3ea")
    pen.text((24, 14), content.SCREENSHOT_TITLE, font=bold, fill="#1b1f27")
    for number, (name, value) in enumerate(content.SCREENSHOT_LINES):
        top = 88 + 56 * number
        pen.text((32, top), f"{name}: {value}", font=plain, fill="#1b1f27")
        pen.line((32, top + 40, 928, top + 40), fill="#cfd4dd")
    buffer = io.BytesIO()
    picture.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


DOCUMENTS: dict[str, Callable[[], bytes]] = {
    "price-list.pdf": price_list,
    "commissioning-scan.pdf": commissioning_scan,
    "maintenance.docx": maintenance,
    "error-codes.html": error_codes,
    "handbook.md": handbook,
    "spare-parts.csv": spare_parts,
    "controller-screen.png": controller_screen,
}


def write(directory: Path) -> None:
    """Write every document into ``directory``."""
    for name, make in DOCUMENTS.items():
        document = make()
        (directory / name).write_bytes(document)
        print(f"{name:24} {len(document):>8,} bytes")


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
