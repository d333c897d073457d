"""The use cases of files: refused early, invisible until stored, one source for equal bytes."""

from __future__ import annotations

import hashlib
import io
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import BinaryIO

import pytest

from pipeline.engines.media import ACCEPTED_NAMES
from pipeline.errors import Conflict, NotFound, TooLarge, TransientError, UnsupportedType
from pipeline.services.files import FileService, UploadContent, Uploaded, UploadRequest
from pipeline.testing.content import MemoryContentStore
from pipeline.types import FileState, IngestMode, Principal
from tests.unit.services.house import ANA, BEN, TENANT, House

MAX_BYTES = 1_000
NOTE = UploadRequest("note.txt", "text/plain")


def service(house: House) -> FileService:
    return FileService(house.units, house.policy, house.content, house.queue, ACCEPTED_NAMES, MAX_BYTES)


def content(body: bytes) -> UploadContent:
    return UploadContent(io.BytesIO(body), len(body), hashlib.sha256(body).hexdigest())


def upload(house: House, body: bytes = b"words", request: UploadRequest = NOTE, principal: Principal = ANA) -> Uploaded:
    return service(house).upload(principal, request, content(body))


def states(house: House) -> list[FileState]:
    return list(house.stores.files.states().values())


@pytest.fixture
def house() -> House:
    return House()


class Interrupted(MemoryContentStore):
    """A store where something happens while the bytes arrive."""

    def __init__(self, happens: Callable[[], None]) -> None:
        super().__init__()
        self._happens = happens

    def put(self, key: str, content: BinaryIO, byte_size: int, media_type: str) -> None:
        super().put(key, content, byte_size, media_type)
        self._happens()


# --- what is refused before a byte is read ---


def test_a_declared_size_is_looked_at_first(house: House) -> None:
    wrong_in_every_way = UploadRequest("a.exe", "application/x-unheard-of", subject="team:blue")
    with pytest.raises(TooLarge, match="1001 bytes; the limit is 1000"):
        service(house).check(ANA, wrong_in_every_way, MAX_BYTES + 1)
    with pytest.raises(UnsupportedType, match="x-unheard-of"):
        service(house).check(ANA, wrong_in_every_way, MAX_BYTES)


def test_a_size_that_was_not_declared_is_looked_at_when_it_is_known(house: House) -> None:
    assert service(house).check(ANA, NOTE, None) == "user:ana"
    with pytest.raises(TooLarge):
        upload(house, b"x" * (MAX_BYTES + 1))
    assert states(house) == []
    assert upload(house, b"x" * MAX_BYTES).file.byte_size == MAX_BYTES


@pytest.mark.parametrize("media_type", ["image/svg+xml", "image/*", "TEXT/PLAIN", "text/plain; charset=utf-8", ""])
def test_only_types_on_the_list_are_taken(house: House, media_type: str) -> None:
    with pytest.raises(UnsupportedType):
        upload(house, request=replace(NOTE, media_type=media_type))
    assert (states(house), list(house.content.keys("")), house.queue.admissions) == ([], [], 0)


def test_a_subject_that_is_not_held_is_one_that_does_not_exist(house: House) -> None:
    house.policy.join(TENANT, "team:blue", "ben")
    answers = []
    for subject in ("team:blue", "team:none", "user:ben"):
        with pytest.raises(NotFound) as refused:
            upload(house, request=replace(NOTE, subject=subject))
        answers.append(str(refused.value))
    assert len(set(answers)) == 1
    with pytest.raises(NotFound):
        upload(house, principal=replace(ANA, narrowed_to=("team:red",)))
    assert states(house) == []


# --- what is stored ---


def test_an_upload_is_a_file_with_a_source_and_a_bell(house: House) -> None:
    stored = upload(house, request=replace(NOTE, filename="../a\u202eb.txt"))
    assert (stored.file.filename, stored.file.state, stored.file.sha256) == (
        "_ab.txt",
        FileState.STORED,
        hashlib.sha256(b"words").hexdigest(),
    )
    assert stored.file.auth_subject == "user:ana"
    assert stored.file.sources == (stored.source_id,)
    assert stored.duplicate_of is None
    assert house.queue.admissions == 1
    assert b"".join(house.content.read(stored.file.content_key)) == b"words"
    assert service(house).get(ANA, stored.file.file_id) == stored.file
    assert service(house).page(ANA, 10, None).items == (stored.file,)


def test_a_key_is_of_the_tenant_and_tells_nothing_of_the_file(house: House) -> None:
    key = upload(house).file.content_key
    prefix, folder, name = key.split("/")
    assert (prefix, folder) == (str(TENANT), "files")
    assert uuid.UUID(name).version == 4


def test_a_team_s_file_is_its_members(house: House) -> None:
    house.policy.join(TENANT, "team:red", "ana")
    house.policy.join(TENANT, "team:red", "ben")
    house.stores.subjects.known.add("team:red")
    stored = upload(house, request=replace(NOTE, subject="team:red"))
    assert service(house).get(BEN, stored.file.file_id).auth_subject == "team:red"
    own = upload(house)
    with pytest.raises(NotFound):
        service(house).get(BEN, own.file.file_id)
    house.policy.leave(TENANT, "team:red", "ben")
    with pytest.raises(NotFound):
        service(house).get(BEN, stored.file.file_id)


def test_a_file_is_invisible_while_its_bytes_arrive(house: House) -> None:
    seen: list[object] = []

    def look() -> None:
        ((file_id, state),) = house.stores.files.states().items()
        seen.append(state)
        seen.append(service(house).page(ANA, 10, None).items)
        with pytest.raises(NotFound):
            service(house).get(ANA, file_id)
        with pytest.raises(NotFound):
            service(house).add_source(ANA, file_id)

    house.content = Interrupted(look)
    upload(house)
    assert seen == [FileState.PENDING, ()]


def test_a_store_that_fails_leaves_a_pending_row_and_no_more(house: House) -> None:
    def fail() -> None:
        raise TransientError("s3", "no answer")

    house.content = Interrupted(fail)
    with pytest.raises(TransientError, match="s3"):
        upload(house)
    assert states(house) == [FileState.PENDING]
    assert service(house).page(ANA, 10, None).items == ()
    assert house.stores.sources.rows == {}
    assert house.queue.admissions == 0


def test_a_file_deleted_while_it_was_received_is_not_stored(house: House) -> None:
    def delete() -> None:
        (file_id,) = house.stores.files.states()
        house.stores.files.move_state(file_id, expected=FileState.PENDING, to=FileState.DELETING)

    house.content = Interrupted(delete)
    with pytest.raises(Conflict):
        upload(house)
    assert (states(house), house.stores.sources.rows) == ([FileState.DELETING], {})
    assert house.queue.admissions == 0


# --- one source for equal bytes ---


def test_a_duplicate_links_to_the_source_there_is(house: House) -> None:
    first, second = upload(house), upload(house, request=replace(NOTE, filename="copy.txt"))
    assert second.source_id == first.source_id
    assert second.duplicate_of == first.file.file_id
    assert second.file.file_id != first.file.file_id
    assert second.file.content_key != first.file.content_key
    assert second.file.sources == (first.source_id,)
    third = upload(house)
    assert third.duplicate_of == first.file.file_id
    other = upload(house, b"other words")
    assert (other.duplicate_of, other.source_id == first.source_id) == (None, False)


def test_equal_bytes_of_others_are_nobody_s_business(house: House) -> None:
    first, other = upload(house), upload(house, principal=BEN)
    assert other.duplicate_of is None
    assert other.source_id != first.source_id


def test_what_is_kept_only_as_a_file_has_no_source(house: House) -> None:
    stored = upload(house, request=replace(NOTE, ingest=IngestMode.NONE))
    assert (stored.source_id, stored.file.sources, house.queue.admissions) == (None, (), 0)
    added = service(house).add_source(ANA, stored.file.file_id)
    assert house.queue.admissions == 1
    assert service(house).get(ANA, stored.file.file_id).sources == (added,)
    assert upload(house).source_id == added
    assert service(house).add_source(ANA, stored.file.file_id) == added


def test_a_readable_source_is_not_a_searchable_one(house: House) -> None:
    readable = upload(house, request=replace(NOTE, ingest=IngestMode.EXTRACT))
    assert readable.source_id is not None
    assert not house.stores.sources.rows[readable.source_id].indexed
    searchable = upload(house)
    assert searchable.source_id not in (None, readable.source_id)


def test_a_source_is_added_of_a_stored_file_one_may_see(house: House) -> None:
    file_id = upload(house, request=replace(NOTE, ingest=IngestMode.NONE)).file.file_id
    for principal, asked in ((BEN, file_id), (ANA, uuid.uuid4())):
        with pytest.raises(NotFound):
            service(house).add_source(principal, asked)
    house.stores.files.move_state(file_id, expected=FileState.STORED, to=FileState.QUARANTINED)
    with pytest.raises(Conflict, match="quarantined"):
        service(house).add_source(ANA, file_id)
    assert (house.stores.sources.rows, house.queue.admissions) == ({}, 0)
