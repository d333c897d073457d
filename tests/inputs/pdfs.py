"""PDF files written byte by byte, so that a test decides what is in them, down to the lie in the page tree."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LETTER = (0.0, 0.0, 612.0, 792.0)

# Padding of the standard security handler (ISO 32000-1, 7.6.3.3).
_PADDING = bytes.fromhex("28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A")

FONTS: Mapping[str, bytes] = {
    "F1": b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    "F2": b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
    "F3": b"<< /Type /Font /Subtype /Type1 /BaseFont /Courier /Encoding /WinAnsiEncoding >>",
    "F4": b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Oblique /Encoding /WinAnsiEncoding >>",
}


@dataclass(frozen=True)
class Image:
    """A grey image; ``grey`` is the value of every pixel."""

    width: int = 8
    height: int = 8
    grey: int = 0x40


@dataclass(frozen=True)
class PageSpec:
    """One page: its content stream, boxes, /Rotate and the images it may draw, by name."""

    content: bytes = b""
    media: tuple[float, float, float, float] = LETTER
    crop: tuple[float, float, float, float] | None = None
    rotate: int = 0
    images: Mapping[str, Image] = field(default_factory=dict)


def text(x: float, y: float, words: str, *, size: float = 12, font: str = "F1", mode: int = 0) -> bytes:
    """One line of text with its baseline at ``y``."""
    shown = words.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    return b"BT /%b %g Tf %d Tr 1 0 0 1 %g %g Tm (%b) Tj ET\n" % (font.encode(), size, mode, x, y, shown)


def lines(
    x: float, y: float, rows: Sequence[str], *, size: float = 12, font: str = "F1", leading: float | None = None
) -> bytes:
    """Lines one below the other, the first with its baseline at ``y``."""
    step = leading if leading is not None else size * 1.2
    return b"".join(text(x, y - step * number, row, size=size, font=font) for number, row in enumerate(rows))


def mapped_font(characters: Mapping[int, str], base: str = "Helvetica") -> bytes:
    """A font whose ToUnicode map gives ``characters`` for codes; to be passed as ``fonts`` of :func:`pdf`.

    The map is written raw: a character may be a NUL or half of a surrogate pair.
    """
    entries = b"".join(
        b"<%02X> <%b>\n" % (code, shown.encode("utf-16-be", "surrogatepass").hex().encode())
        for code, shown in characters.items()
    )
    cmap = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        b"1 begincodespacerange <00> <FF> endcodespacerange\n%d beginbfchar\n%bendbfchar\n"
        b"endcmap CMapName currentdict /CMap defineresource pop end end" % (len(characters), entries)
    )
    return b"<< /Type /Font /Subtype /Type1 /BaseFont /%b /ToUnicode STREAM(%b) >>" % (base.encode(), cmap)


def pdf(
    pages: Sequence[PageSpec | bytes],
    *,
    fonts: Mapping[str, bytes] | None = None,
    title: bytes | None = None,
    count: int | None = None,
    passwords: tuple[bytes, bytes] | None = None,
) -> bytes:
    """A document of ``pages``. ``count`` is what the page tree claims; ``passwords`` (user, owner) encrypt it."""
    writer = _Writer(passwords)
    catalog, tree = writer.reserve(), writer.reserve()
    names = b" ".join(
        b"/%b %d 0 R" % (name.encode(), writer.font(body)) for name, body in {**FONTS, **(fonts or {})}.items()
    )
    kids = [writer.page(page if isinstance(page, PageSpec) else PageSpec(page), tree, names) for page in pages]
    claimed = len(kids) if count is None else count
    writer.put(catalog, b"<< /Type /Catalog /Pages %d 0 R >>" % tree)
    writer.put(tree, b"<< /Type /Pages /Count %d /Kids [%b] >>" % (claimed, b" ".join(b"%d 0 R" % kid for kid in kids)))
    info = writer.add(b"<< /Title <%b> >>" % title.hex().encode()) if title is not None else None
    return writer.finish(catalog, info)


class _Writer:
    def __init__(self, passwords: tuple[bytes, bytes] | None) -> None:
        self._objects: list[bytes] = []
        self._identity = hashlib.md5(b"docmill test", usedforsecurity=False).digest()
        self._owner, self._user, self._key = _encryption(*passwords, self._identity) if passwords else (b"", b"", b"")

    def reserve(self) -> int:
        self._objects.append(b"null")
        return len(self._objects)

    def put(self, number: int, body: bytes) -> None:
        self._objects[number - 1] = body

    def add(self, body: bytes) -> int:
        number = self.reserve()
        self.put(number, body)
        return number

    def stream(self, content: bytes, entries: bytes = b"") -> int:
        number = self.reserve()
        packed = zlib.compress(content)
        if self._key:
            salt = number.to_bytes(3, "little") + b"\0\0"
            packed = _rc4(hashlib.md5(self._key + salt, usedforsecurity=False).digest()[:10], packed)
        head = b"<< /Length %d /Filter /FlateDecode %b >>" % (len(packed), entries)
        self.put(number, head + b"\nstream\n" + packed + b"\nendstream")
        return number

    def font(self, body: bytes) -> int:
        before, mark, rest = body.partition(b"STREAM(")
        if mark:
            cmap, _, after = rest.rpartition(b")")
            body = before + b"%d 0 R" % self.stream(cmap) + after
        return self.add(body)

    def page(self, page: PageSpec, tree: int, fonts: bytes) -> int:
        images = b" ".join(b"/%b %d 0 R" % (name.encode(), self._image(image)) for name, image in page.images.items())
        crop = b"/CropBox [%g %g %g %g]" % page.crop if page.crop else b""
        return self.add(
            b"<< /Type /Page /Parent %d 0 R /MediaBox [%g %g %g %g] %b /Rotate %d /Contents %d 0 R "
            b"/Resources << /Font << %b >> /XObject << %b >> >> >>"
            % (tree, *page.media, crop, page.rotate, self.stream(page.content), fonts, images)
        )

    def _image(self, image: Image) -> int:
        return self.stream(
            bytes([image.grey]) * (image.width * image.height),
            b"/Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8"
            % (image.width, image.height),
        )

    def finish(self, catalog: int, info: int | None) -> bytes:
        extra = b" /Info %d 0 R" % info if info is not None else b""
        if self._key:
            encrypt = self.add(
                b"<< /Filter /Standard /V 1 /R 2 /O <%b> /U <%b> /P -4 >>"
                % (self._owner.hex().encode(), self._user.hex().encode())
            )
            identity = self._identity.hex().encode()
            extra += b" /Encrypt %d 0 R /ID [<%b> <%b>]" % (encrypt, identity, identity)
        out = bytearray(b"%PDF-1.4\n")
        offsets = []
        for number, body in enumerate(self._objects, start=1):
            offsets.append(len(out))
            out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
        start = len(out)
        out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1)
        out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
        out += b"trailer\n<< /Size %d /Root %d 0 R%b >>\n" % (len(offsets) + 1, catalog, extra)
        return bytes(out + b"startxref\n%d\n%%%%EOF\n" % start)


def _encryption(user: bytes, owner: bytes, identity: bytes) -> tuple[bytes, bytes, bytes]:
    """Owner entry, user entry and file key of the standard security handler, revision 2 (40-bit RC4)."""
    owner_key = hashlib.md5((owner + _PADDING)[:32], usedforsecurity=False).digest()[:5]
    padded = (user + _PADDING)[:32]
    owner_entry = _rc4(owner_key, padded)
    permissions = (-4).to_bytes(4, "little", signed=True)
    key = hashlib.md5(padded + owner_entry + permissions + identity, usedforsecurity=False).digest()[:5]
    return owner_entry, _rc4(key, _PADDING), key


def _rc4(key: bytes, data: bytes) -> bytes:
    state = list(range(256))
    j = 0
    for i in range(256):
        j = (j + state[i] + key[i % len(key)]) % 256
        state[i], state[j] = state[j], state[i]
    i = j = 0
    out = bytearray()
    for byte in data:
        i = (i + 1) % 256
        j = (j + state[i]) % 256
        state[i], state[j] = state[j], state[i]
        out.append(byte ^ state[(state[i] + state[j]) % 256])
    return bytes(out)
