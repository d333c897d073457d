"""Which characters the bytes of a text file stand for."""

from __future__ import annotations

import codecs

import charset_normalizer

# The longer mark first: UTF-32's little-endian mark begins with UTF-16's.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# The five bytes windows-1252 leaves undefined; browsers read them as the controls of the same number.
_UNDEFINED = {0x81: "\x81", 0x8D: "\x8d", 0x8F: "\x8f", 0x90: "\x90", 0x9D: "\x9d"}
SAMPLE_BYTES = 64 * 1024
# Western text in windows-1252 has an accent in every tenth letter at most; text in another script in a one- or
# two-byte encoding is mostly bytes above 127. Only the latter is worth guessing at.
_FOREIGN_SHARE = 0.25
# Fewer such bytes are a word or two, and any guess fits them.
_FOREIGN_BYTES = 12
# What text in other scripts is written in. Encodings without ASCII, and UTF-16 without its mark, fit anything.
_CYRILLIC = ("cp1251", "koi8_r", "koi8_u", "cp866", "iso8859_5", "mac_cyrillic")
_GREEK_TO_THAI = ("cp1253", "iso8859_7", "cp1255", "iso8859_8", "cp1256", "iso8859_6", "cp874")
_EAST_ASIAN = ("cp932", "euc_jp", "gb18030", "big5", "cp949", "euc_kr")
_FOREIGN_ENCODINGS = [*_CYRILLIC, *_GREEK_TO_THAI, *_EAST_ASIAN]
# A few bytes that are no UTF-8 among many characters that are: damage, not another encoding.
_DAMAGED_SHARE = 0.02


def has_mark(data: bytes) -> str | None:
    """The encoding that a byte-order mark at the beginning names; None without one."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)


def is_utf8(data: bytes) -> bool:
    """Whether data that may be cut off inside its last character is valid UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as problem:
        return problem.reason == "unexpected end of data"
    return True


def decode(data: bytes, declared: str | None = None) -> str:
    """The text of ``data``: by its byte-order mark, else as UTF-8 if it is valid UTF-8, else as ``declared`` if it is a
    known encoding, else by the likeliest encoding of its script, else as windows-1252. Never fails; no mark remains.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as problem:
        # A file cut off inside its last character is still UTF-8.
        if problem.reason == "unexpected end of data":
            return data[: problem.start].decode("utf-8")
    damaged = data.decode("utf-8", "replace")
    foreign = len(damaged) - len(damaged.encode("ascii", "ignore"))
    if damaged.count("\ufffd") <= foreign * _DAMAGED_SHARE:
        return damaged
    likeliest = _known(declared) or _guess(data[:SAMPLE_BYTES])
    if likeliest is not None:
        return data.decode(likeliest, "replace")
    return data.decode("cp1252", "windows1252")


def _undefined_as_controls(problem: UnicodeError) -> tuple[str, int]:
    if not isinstance(problem, UnicodeDecodeError):
        raise problem
    found = problem.object[problem.start : problem.end]
    return "".join(_UNDEFINED.get(byte, "\ufffd") for byte in found), problem.end


codecs.register_error("windows1252", _undefined_as_controls)


def _known(label: str | None) -> str | None:
    """The codec of a declared charset. Latin-1 and ASCII mean windows-1252 on the web; UTF-8 was already ruled out."""
    if not label:
        return None
    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):
        return None
    if name in ("iso8859-1", "ascii", "cp1252") or name.startswith(("utf-", "utf_")):
        return None
    try:
        # The registry also holds codecs that are no charsets (hex, rot13, idna …).
        "a".encode(name)
        b"a".decode(name)
    except (LookupError, UnicodeError, ValueError):
        return None
    return None if name in ("punycode", "idna", "raw-unicode-escape", "unicode-escape", "undefined", "mbcs") else name


def _guess(sample: bytes) -> str | None:
    letters = sum(1 for byte in sample if byte > 127 or chr(byte).isalpha())
    high = sum(1 for byte in sample if byte > 127)
    if high < max(_FOREIGN_BYTES, letters * _FOREIGN_SHARE):
        return None
    best = charset_normalizer.from_bytes(sample, cp_isolation=_FOREIGN_ENCODINGS).best()
    return best.encoding if best is not None else None
