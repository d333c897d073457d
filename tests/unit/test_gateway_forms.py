"""The form reader: however the bytes are cut, the same file comes out."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engines import media
from pipeline.entrypoints.gateway import uploads
from pipeline.errors import Invalid, TooLarge, UnsupportedType

BOUNDARY = b"x1"
MAX_BYTES = 4_096


def _check_type(media_type: str) -> None:
    if media_type not in media.BY_NAME:
        raise UnsupportedType(media_type)


def _read(body: bytes, cuts: list[int]) -> tuple[bytes, uploads._Form]:
    form = uploads._Form(MAX_BYTES, _check_type)
    parser = uploads._parser(BOUNDARY, form)
    content, at = b"", 0
    for cut in [*sorted({cut for cut in cuts if cut < len(body)}), len(body)]:
        uploads._feed(parser, form, body[at:cut])
        content, at = content + form.take(), cut
    return content, form


def _form(content: bytes, filename: str = "a.txt", subject: bytes = b"team") -> bytes:
    return (
        b'--x1\r\nContent-Disposition: form-data; name="subject"\r\n\r\n' + subject + b"\r\n"
        b'--x1\r\nContent-Disposition: form-data; name="file"; filename="' + filename.encode() + b'"\r\n'
        b"Content-Type: text/plain; charset=utf-8\r\n\r\n" + content + b"\r\n--x1--\r\n"
    )


# Made of what boundaries are made of.
_near_boundaries = st.lists(
    st.sampled_from([b"\r", b"\n", b"-", b"--x1", b"\r\n--x", b"x1", b"\x00", b"a"]), max_size=40
)


@settings(deadline=None)
@given(
    content=_near_boundaries.map(b"".join).filter(lambda content: b"\r\n--x1" not in b"\r\n" + content + b"\r"),
    cuts=st.lists(st.integers(1, 400), max_size=12),
)
def test_cuts_change_nothing(content: bytes, cuts: list[int]) -> None:
    read, form = _read(_form(content), cuts)
    assert read == content
    assert (form.byte_size, form.fields, form.filename) == (len(content), {"subject": "team"}, "a.txt")
    assert form.media_type == "text/plain"


@settings(deadline=None)
@given(body=st.binary(max_size=300), cuts=st.lists(st.integers(1, 300), max_size=5))
def test_any_bytes_are_read_or_refused(body: bytes, cuts: list[int]) -> None:
    for candidate in (body, b"--x1\r\n" + body, _form(b"a")[:90] + body):
        try:
            _read(candidate, cuts)
        except (Invalid, TooLarge, UnsupportedType):
            continue


@pytest.mark.parametrize("name", ["\u00e4\u4e2d.txt", 'a"b.txt', "C:\\docs\\a.txt", "", "a\u202eb.txt"])
def test_names_arrive_as_they_were_sent(name: str) -> None:
    _, form = _read(_form(b"x", name.replace('"', '\\"')), [])
    assert form.filename == name.rpartition("\\")[2]


def test_the_limit_is_the_files_own() -> None:
    content, _ = _read(_form(b"x" * MAX_BYTES), [])
    assert len(content) == MAX_BYTES
    with pytest.raises(TooLarge, match=str(MAX_BYTES)):
        _read(_form(b"x" * (MAX_BYTES + 1)), [])


@pytest.mark.parametrize(
    ("declared", "filename", "found"),
    [
        ("text/plain; charset=utf-8", "a.bin", "text/plain"),
        ("TEXT/X-MARKDOWN", "a", "text/markdown"),
        ("application/octet-stream", "a.PDF", "application/pdf"),
        ("", "a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ],
)
def test_the_declared_type_or_the_extensions(declared: str, filename: str, found: str) -> None:
    assert uploads._media_type(declared, filename) == found


@pytest.mark.parametrize(
    ("declared", "filename"),
    [("", ""), ("", "a"), ("", "a.exe"), ("x", "a.txt"), ("a/b\x00", "a.txt"), ("a/" + "b" * 999, "a.txt")],
)
def test_types_that_tell_nothing_are_refused(declared: str, filename: str) -> None:
    with pytest.raises(UnsupportedType) as refused:
        uploads._media_type(declared, filename)
    assert "\x00" not in str(refused.value)
    assert len(str(refused.value)) < 120
