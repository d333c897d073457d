"""The exact list of accepted media types: no wildcards, and SVG is not an image here.

Every type on the list may be stored. Those with a :class:`Reader` can be turned into text; the others end
in ``unsupported-type`` naming what to convert to.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from types import MappingProxyType


class Family(StrEnum):
    """What kinds of content may pass for one another by name: the extension has to agree in family only."""

    PDF = "pdf"
    IMAGE = "image"
    TEXT = "text"
    WORD = "word"
    SLIDES = "slides"
    SHEET = "sheet"
    MAIL = "mail"
    BOOK = "book"
    SOUND = "sound"


class Reader(StrEnum):
    """Which reader turns the type into text."""

    PDF = "pdf"
    IMAGE = "image"
    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    TABULAR = "tabular"
    DOCX = "docx"


@dataclass(frozen=True, slots=True)
class MediaType:
    """One accepted type.

    ``label`` completes "the file is …". ``extensions`` are lower case without a dot, the usual one first.
    ``convert_to`` names what to convert to while ``reader`` is None.
    """

    name: str
    label: str
    family: Family
    extensions: tuple[str, ...]
    reader: Reader | None = None
    convert_to: str = "PDF"


OCTET_STREAM = "application/octet-stream"
PDF = "application/pdf"
PLAIN = "text/plain"
MARKDOWN = "text/markdown"
HTML = "text/html"
CSV = "text/csv"
TSV = "text/tab-separated-values"
JSON = "application/json"
XML = "application/xml"
RTF = "application/rtf"
EML = "message/rfc822"
MSG = "application/vnd.ms-outlook"
DOC = "application/msword"
PPT = "application/vnd.ms-powerpoint"
XLS = "application/vnd.ms-excel"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
ODT = "application/vnd.oasis.opendocument.text"
ODP = "application/vnd.oasis.opendocument.presentation"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
EPUB = "application/epub+zip"
TIFF = "image/tiff"

ACCEPTED: tuple[MediaType, ...] = (
    MediaType(PDF, "a PDF", Family.PDF, ("pdf",), Reader.PDF),
    MediaType("image/png", "a PNG image", Family.IMAGE, ("png",), Reader.IMAGE),
    MediaType("image/jpeg", "a JPEG image", Family.IMAGE, ("jpg", "jpeg", "jpe", "jfif"), Reader.IMAGE),
    MediaType("image/webp", "a WebP image", Family.IMAGE, ("webp",), Reader.IMAGE),
    MediaType(TIFF, "a TIFF image", Family.IMAGE, ("tif", "tiff"), Reader.IMAGE),
    MediaType("image/gif", "a GIF image", Family.IMAGE, ("gif",), Reader.IMAGE),
    MediaType("image/bmp", "a BMP image", Family.IMAGE, ("bmp", "dib"), Reader.IMAGE),
    MediaType("image/heic", "a HEIC image", Family.IMAGE, ("heic", "heif"), convert_to="JPEG or PNG"),
    MediaType(PLAIN, "a text file", Family.TEXT, ("txt", "text", "log"), Reader.TEXT),
    MediaType(MARKDOWN, "a Markdown file", Family.TEXT, ("md", "markdown", "mdown", "mkd"), Reader.MARKDOWN),
    MediaType(HTML, "an HTML page", Family.TEXT, ("html", "htm", "xhtml"), Reader.HTML),
    MediaType(XML, "an XML file", Family.TEXT, ("xml",), convert_to="HTML or text"),
    MediaType(JSON, "a JSON file", Family.TEXT, ("json",), convert_to="CSV or text"),
    MediaType("text/x-rst", "a reStructuredText file", Family.TEXT, ("rst",), convert_to="Markdown or HTML"),
    MediaType("text/x-org", "an Org file", Family.TEXT, ("org",), convert_to="Markdown or HTML"),
    MediaType(DOCX, "a Word document (DOCX)", Family.WORD, ("docx",), Reader.DOCX),
    MediaType(DOC, "a Word 97-2003 document (DOC)", Family.WORD, ("doc",), convert_to="DOCX or PDF"),
    MediaType(ODT, "an OpenDocument text (ODT)", Family.WORD, ("odt",), convert_to="DOCX or PDF"),
    MediaType(RTF, "a Rich Text document (RTF)", Family.WORD, ("rtf",), convert_to="DOCX or PDF"),
    MediaType(PPTX, "a PowerPoint presentation (PPTX)", Family.SLIDES, ("pptx",)),
    MediaType(PPT, "a PowerPoint 97-2003 presentation (PPT)", Family.SLIDES, ("ppt",)),
    MediaType(ODP, "an OpenDocument presentation (ODP)", Family.SLIDES, ("odp",)),
    MediaType(XLSX, "an Excel workbook (XLSX)", Family.SHEET, ("xlsx",), convert_to="CSV"),
    MediaType(XLS, "an Excel 97-2003 workbook (XLS)", Family.SHEET, ("xls",), convert_to="CSV"),
    MediaType(ODS, "an OpenDocument spreadsheet (ODS)", Family.SHEET, ("ods",), convert_to="CSV"),
    MediaType(CSV, "a CSV file", Family.TEXT, ("csv",), Reader.TABULAR),
    MediaType(TSV, "a TSV file", Family.TEXT, ("tsv", "tab"), Reader.TABULAR),
    MediaType(EML, "an e-mail message (EML)", Family.MAIL, ("eml",), convert_to="PDF or HTML"),
    MediaType(MSG, "an Outlook message (MSG)", Family.MAIL, ("msg",), convert_to="PDF or HTML"),
    MediaType(EPUB, "an e-book (EPUB)", Family.BOOK, ("epub",), convert_to="PDF or HTML"),
    MediaType("audio/mpeg", "an MP3 recording", Family.SOUND, ("mp3",), convert_to="a text transcript"),
    MediaType("audio/wav", "a WAV recording", Family.SOUND, ("wav",), convert_to="a text transcript"),
    MediaType("audio/mp4", "an M4A recording", Family.SOUND, ("m4a",), convert_to="a text transcript"),
    MediaType("audio/flac", "a FLAC recording", Family.SOUND, ("flac",), convert_to="a text transcript"),
    MediaType("audio/ogg", "an OGG recording", Family.SOUND, ("ogg", "oga", "opus"), convert_to="a text transcript"),
    MediaType("video/mp4", "an MP4 video", Family.SOUND, ("mp4",), convert_to="a text transcript"),
    MediaType("video/webm", "a WebM video", Family.SOUND, ("webm",), convert_to="a text transcript"),
)

BY_NAME: MappingProxyType[str, MediaType] = MappingProxyType({media.name: media for media in ACCEPTED})
BY_EXTENSION: MappingProxyType[str, MediaType] = MappingProxyType(
    {extension: media for media in ACCEPTED for extension in media.extensions}
)

ACCEPTED_NAMES = frozenset(BY_NAME)

# Other names that browsers, mail programs and libmagic give to the same types.
_ALIASES: MappingProxyType[str, str] = MappingProxyType(
    {
        "application/x-pdf": PDF,
        "image/jpg": "image/jpeg",
        "image/pjpeg": "image/jpeg",
        "image/x-png": "image/png",
        "image/x-tiff": TIFF,
        "image/x-ms-bmp": "image/bmp",
        "image/x-bmp": "image/bmp",
        "image/heif": "image/heic",
        "text/x-markdown": MARKDOWN,
        "application/xhtml+xml": HTML,
        "text/xml": XML,
        "text/json": JSON,
        "text/prs.fallenstein.rst": "text/x-rst",
        "text/org": "text/x-org",
        "text/rtf": RTF,
        "application/csv": CSV,
        "text/x-csv": CSV,
        "text/tsv": TSV,
        "application/x-ole-storage": OCTET_STREAM,
        "binary/octet-stream": OCTET_STREAM,
        "application/x-unknown": OCTET_STREAM,
        "audio/mp3": "audio/mpeg",
        "audio/x-wav": "audio/wav",
        "audio/wave": "audio/wav",
        "audio/vnd.wave": "audio/wav",
        "audio/x-m4a": "audio/mp4",
        "audio/m4a": "audio/mp4",
        "audio/x-flac": "audio/flac",
        "application/ogg": "audio/ogg",
        "video/x-m4v": "video/mp4",
    }
)


def normalise(declared: str) -> str:
    """A declared media type without parameters, in lower case, by its usual name; '' when none was declared."""
    name = declared.partition(";")[0].strip().lower()
    name = _ALIASES.get(name, name)
    return "" if name == OCTET_STREAM else name


def find(declared: str) -> MediaType | None:
    """The accepted type of this (or an equivalent) name; None when it is not on the list."""
    return BY_NAME.get(normalise(declared))


def extension_of(filename: str) -> str:
    """The extension in lower case without its dot; '' when there is none."""
    return PurePosixPath(filename.replace("\\", "/")).suffix.lower().removeprefix(".")


def media_type_for(filename: str) -> str | None:
    """The accepted media type that a file name's extension stands for; None when it is not on the list."""
    media = BY_EXTENSION.get(extension_of(filename))
    return media.name if media else None
