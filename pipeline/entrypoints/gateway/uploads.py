"""Reads an upload as it arrives: bounded memory, the file spooled and hashed, nothing kept of what is refused."""

from __future__ import annotations

import asyncio
import hashlib
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from pipeline.engines import media
from pipeline.errors import Invalid, TooLarge, TransientError, UnsupportedType
from pipeline.services.files import UploadContent

_FIELDS = frozenset({"subject", "ingest", "priority"})
_FILE = "file"
# Everything of a form that is not the file's bytes: boundaries, headers, fields.
_FORM_BYTES = 64 * 1024
_MOST_PARTS = 8
_MOST_HEADERS = 8
_MOST_HEADER_BYTES = 4 * 1024
_MOST_FIELD_BYTES = 1024
# Before the first boundary and after the last one a form has a line end, no more.
_MOST_PADDING_BYTES = 4 * 1024
_IN_MEMORY_BYTES = 1024 * 1024
_WRITE_BYTES = 256 * 1024
_IDLE_S = 60.0
# Averaged from the second minute on: slower than any line, so it can only be meant to hold the connection.
_SLOWEST_BYTES_PER_S = 1024
# RFC 6838, section 4.2.
_TYPE_NAME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}")
_SHOWN_ENDING = 16
_PLAIN_ENCODINGS = frozenset({"", "7bit", "8bit", "binary"})


@dataclass(frozen=True, slots=True)
class Received:
    """A whole form. The caller closes ``content.stream``."""

    fields: dict[str, str]
    filename: str
    media_type: str
    content: UploadContent


async def receive(
    request: Request, max_bytes: int, check_type: Callable[[str], None], directory: Path | None
) -> Received:
    """Read a multipart form with one file of at most ``max_bytes`` bytes.

    ``check_type`` refuses a media type as soon as the file's headers are read; ``directory`` is where a file over
    1 MiB lies meanwhile. Raises TooLarge, UnsupportedType, Invalid, and ``TransientError('disk', …)``.
    """
    boundary = _boundary(request)
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > max_bytes + _FORM_BYTES:
        raise TooLarge(f"the upload declares {int(declared)} bytes; the limit is {max_bytes}")
    form = _Form(max_bytes, check_type)
    spool = tempfile.SpooledTemporaryFile(  # noqa: SIM115 (given to the caller)
        max_size=_IN_MEMORY_BYTES, dir=str(directory) if directory is not None else None
    )
    try:
        sha256 = await _read(request, form, _parser(boundary, form), cast(BinaryIO, spool))
        return form.received(cast(BinaryIO, spool), sha256)
    except OSError as problem:
        spool.close()
        raise TransientError("disk", "the upload could not be written") from problem
    except BaseException:
        spool.close()
        raise


async def _read(request: Request, form: _Form, parser: MultipartParser, spool: BinaryIO) -> str:
    """Feed the parser and move the file's bytes to the spool, off the event loop; the sha256 hex digest."""
    digest = hashlib.sha256()

    def keep(piece: bytes) -> None:
        digest.update(piece)
        spool.write(piece)

    async for piece in _pieces(request):
        _feed(parser, form, piece)
        if len(form.pending) >= _WRITE_BYTES:
            await run_in_threadpool(keep, form.take())
    await run_in_threadpool(keep, form.take())
    spool.seek(0)
    return digest.hexdigest()


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    """The body as it arrives. Raises Invalid when it stops arriving, or trickles."""
    stream, began, received = request.stream(), time.monotonic(), 0
    while True:
        try:
            async with asyncio.timeout(_IDLE_S):
                piece = await anext(stream)
        except StopAsyncIteration:
            return
        except TimeoutError as problem:
            raise Invalid(f"no byte arrived for {_IDLE_S:g} seconds") from problem
        received += len(piece)
        elapsed = time.monotonic() - began
        if elapsed > _IDLE_S and received < elapsed * _SLOWEST_BYTES_PER_S:
            raise Invalid(f"fewer than {_SLOWEST_BYTES_PER_S} bytes arrived a second")
        yield piece


def _feed(parser: MultipartParser, form: _Form, piece: bytes) -> None:
    form.count(len(piece))
    try:
        parser.write(piece)
    except FormParserError as problem:
        raise Invalid("the multipart form is malformed") from problem


def _boundary(request: Request) -> bytes:
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data":
        raise UnsupportedType("an upload is multipart/form-data")
    boundary = options.get(b"boundary", b"")
    if not boundary:
        raise Invalid("the multipart form names no boundary")
    return boundary


def _parser(boundary: bytes, form: _Form) -> MultipartParser:
    try:
        return MultipartParser(
            boundary,
            {
                "on_part_begin": form.begin_part,
                "on_header_field": form.header_name,
                "on_header_value": form.header_value,
                "on_header_end": form.end_header,
                "on_headers_finished": form.end_headers,
                "on_part_data": form.part_data,
                "on_part_end": form.end_part,
                "on_end": form.end,
            },
            max_header_count=_MOST_HEADERS,
            max_header_size=_MOST_HEADER_BYTES,
        )
    except FormParserError as problem:
        raise Invalid("the multipart boundary is too long") from problem


@dataclass
class _Form:
    """What was read so far; the parser calls it."""

    max_bytes: int
    check_type: Callable[[str], None]
    pending: bytearray = field(default_factory=bytearray)
    fields: dict[str, str] = field(default_factory=dict)
    filename: str | None = None
    media_type: str = ""
    byte_size: int = 0
    _received: int = 0
    _parts: int = 0
    _name: bytes = b""
    _value: bytes = b""
    _headers: dict[bytes, str] = field(default_factory=dict)
    _part: str = ""
    _field: bytearray = field(default_factory=bytearray)
    _padding: int = 0
    _ended: bool = False

    # --- bounds ---

    def count(self, size: int) -> None:
        """Bytes about to be parsed: bounds what no callback sees."""
        self._received += size
        if self._received > self.max_bytes + _FORM_BYTES:
            raise TooLarge(f"the upload is larger than the limit of {self.max_bytes} bytes")
        # A piece may begin with padding and go on with parts, so only pieces before it count.
        if self._parts == 0 or self._ended:
            if self._padding > _MOST_PADDING_BYTES:
                raise Invalid("the multipart form is malformed")
            self._padding += size

    # --- the parser's callbacks ---

    def begin_part(self) -> None:
        self._parts += 1
        self._padding = 0
        if self._parts > _MOST_PARTS:
            raise Invalid(f"a form may have {_MOST_PARTS} parts")
        self._headers, self._field, self._part = {}, bytearray(), ""

    def header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def end_header(self) -> None:
        self._headers[self._name.lower()] = self._value.decode("latin-1")
        self._name = self._value = b""

    def end_headers(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition"))
        self._part = _text(options.get(b"name", b""))
        if self._headers.get(b"content-transfer-encoding", "").strip().lower() not in _PLAIN_ENCODINGS:
            raise Invalid("a part with a transfer encoding is not taken; send the bytes as they are")
        if self._part == _FILE:
            self._begin_file(_text(options.get(b"filename", b"")))
        elif self._part not in _FIELDS:
            raise Invalid("the form has a field of another name than file, subject, ingest and priority")
        elif self._part in self.fields:
            raise Invalid(f"the form has more than one {self._part}")

    def part_data(self, data: bytes, start: int, end: int) -> None:
        if self._part == _FILE:
            self.byte_size += end - start
            if self.byte_size > self.max_bytes:
                raise TooLarge(f"the file is larger than the limit of {self.max_bytes} bytes")
            self.pending += data[start:end]
            return
        self._field += data[start:end]
        if len(self._field) > _MOST_FIELD_BYTES:
            raise Invalid(f"{self._part} is longer than {_MOST_FIELD_BYTES} bytes")

    def end_part(self) -> None:
        if self._part == _FILE:
            return
        try:
            self.fields[self._part] = self._field.decode()
        except UnicodeDecodeError as problem:
            raise Invalid(f"{self._part} is not UTF-8") from problem

    def end(self) -> None:
        self._ended = True

    # --- what came of it ---

    def take(self) -> bytes:
        """The file's bytes that were not taken yet."""
        taken, self.pending = bytes(self.pending), bytearray()
        return taken

    def received(self, spool: BinaryIO, sha256: str) -> Received:
        """Raises Invalid for a form that ends early, has no file, or an empty one."""
        if not self._ended:
            raise Invalid("the multipart form ends early")
        if self.filename is None:
            raise Invalid("the form has no file")
        if self.byte_size == 0:
            raise Invalid("the file has no bytes")
        return Received(self.fields, self.filename, self.media_type, UploadContent(spool, self.byte_size, sha256))

    def _begin_file(self, filename: str) -> None:
        if self.filename is not None:
            raise Invalid("the form has more than one file")
        self.filename = filename
        self.media_type = _media_type(self._headers.get(b"content-type", ""), filename)
        self.check_type(self.media_type)


def _media_type(declared: str, filename: str) -> str:
    """The declared type by its usual name; by the file name's extension when none in particular is declared."""
    name = media.normalise(declared)
    if name:
        if _TYPE_NAME.fullmatch(name) is None:
            raise UnsupportedType("the file's media type is malformed")
        return name
    found = media.media_type_for(filename)
    if found is None:
        ending = media.extension_of(filename)
        shown = f" (.{ending})" if ending.isalnum() and len(ending) <= _SHOWN_ENDING else ""
        raise UnsupportedType(f"the file has no media type, and its name{shown} does not tell an accepted one")
    return found


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")
