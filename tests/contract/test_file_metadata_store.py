"""What every FileMetadataStore holds: rows nobody sees before their bytes are stored, states changed once."""

from __future__ import annotations

import base64
import uuid

import pytest
from sqlalchemy.exc import IntegrityError

from pipeline.errors import Invalid, NotFound
from pipeline.ports import NewFile
from pipeline.records import StoredFile
from pipeline.types import FileState
from tests.contract.stores import SUBJECTS, House

OWN, TEAM = SUBJECTS
SHA = "ab" * 32


@pytest.fixture
def tenant(house: House) -> uuid.UUID:
    return house.tenant()


def new(subject: str = OWN, filename: str = "report.pdf") -> NewFile:
    file_id = uuid.uuid4()
    return NewFile(file_id, filename, "application/pdf", 1_000, subject, f"files/{file_id}")


def pending(house: House, tenant: uuid.UUID, subject: str = OWN) -> uuid.UUID:
    made = new(subject)
    with house.open(tenant) as stores:
        stores.files.add_pending(made)
    return made.file_id


def stored(house: House, tenant: uuid.UUID, subject: str = OWN, sha256: str = SHA) -> uuid.UUID:
    file_id = pending(house, tenant, subject)
    with house.open(tenant) as stores:
        assert stores.files.mark_stored(file_id, sha256=sha256, byte_size=1_000, media_type="application/pdf")
    return file_id


def get(house: House, tenant: uuid.UUID, file_id: uuid.UUID, *subjects: str) -> StoredFile:
    with house.open(tenant) as stores:
        return stores.files.get(file_id, subjects or SUBJECTS)


def listed(house: House, tenant: uuid.UUID, *subjects: str) -> list[uuid.UUID]:
    with house.open(tenant) as stores:
        return [file.file_id for file in stores.files.page(subjects or SUBJECTS, 50, None).items]


def move(house: House, tenant: uuid.UUID, file_id: uuid.UUID, expected: FileState, to: FileState) -> bool:
    with house.open(tenant) as stores:
        return stores.files.move_state(file_id, expected=expected, to=to)


def test_a_stored_file_is_what_was_said_and_what_was_found(house: House, tenant: uuid.UUID) -> None:
    made = new(filename="naïve — “report” 東京.pdf")
    with house.open(tenant) as stores:
        stores.files.add_pending(made)
    with house.open(tenant) as stores:
        assert stores.files.mark_stored(made.file_id, sha256=SHA, byte_size=7, media_type="text/plain")
    file = get(house, tenant, made.file_id)
    assert (file.file_id, file.filename, file.media_type, file.byte_size) == (
        made.file_id,
        made.filename,
        "text/plain",
        7,
    )
    assert (file.sha256, file.version, file.auth_subject, file.state) == (SHA, 1, OWN, FileState.STORED)
    assert (file.content_key, file.low_confidence, file.sources) == (made.content_key, False, ())
    assert file.created_at.tzinfo is not None


def test_a_pending_file_is_seen_by_nobody(house: House, tenant: uuid.UUID) -> None:
    file_id = pending(house, tenant)
    with pytest.raises(NotFound):
        get(house, tenant, file_id)
    assert listed(house, tenant) == []
    with house.open(tenant) as stores:
        assert stores.files.find_same(OWN, "") is None


def test_bytes_are_stored_once(house: House, tenant: uuid.UUID) -> None:
    file_id = stored(house, tenant)
    with house.open(tenant) as stores:
        assert not stores.files.mark_stored(file_id, sha256="cd" * 32, byte_size=9, media_type="text/plain")
        assert not stores.files.mark_stored(uuid.uuid4(), sha256=SHA, byte_size=9, media_type="text/plain")
    assert (get(house, tenant, file_id).sha256, get(house, tenant, file_id).byte_size) == (SHA, 1_000)


def test_a_file_is_for_its_subject_in_its_tenant(house: House, tenant: uuid.UUID) -> None:
    own, team = stored(house, tenant, OWN), stored(house, tenant, TEAM)
    assert get(house, tenant, team, TEAM).auth_subject == TEAM
    assert listed(house, tenant, TEAM) == [team]
    assert listed(house, tenant, "user:eve") == []
    for subjects in ([TEAM], ["user:eve"], []):
        with house.open(tenant) as stores, pytest.raises(NotFound):
            stores.files.get(own, subjects)
    other = house.tenant()
    with pytest.raises(NotFound):
        get(house, other, own)
    assert listed(house, other) == []
    assert not move(house, other, own, FileState.STORED, FileState.DELETING)
    with house.open(other) as stores:
        assert stores.files.find_same(OWN, SHA) is None
    with house.open(tenant) as stores:
        assert stores.files.page([], 50, None).items == ()


def test_a_file_needs_a_subject_that_is_there_and_an_id_of_its_own(house: House, tenant: uuid.UUID) -> None:
    made = new()
    with house.open(tenant) as stores:
        stores.files.add_pending(made)
    for refused in (made, new("user:unknown")):
        with pytest.raises((IntegrityError, LookupError)), house.open(tenant) as stores:
            stores.files.add_pending(refused)


def test_a_state_changes_only_from_the_expected_one(house: House, tenant: uuid.UUID) -> None:
    file_id = stored(house, tenant)
    assert not move(house, tenant, file_id, FileState.PENDING, FileState.DELETED)
    assert not move(house, tenant, uuid.uuid4(), FileState.STORED, FileState.DELETING)
    assert move(house, tenant, file_id, FileState.STORED, FileState.QUARANTINED)
    assert get(house, tenant, file_id).state is FileState.QUARANTINED
    assert listed(house, tenant) == [file_id]
    assert move(house, tenant, file_id, FileState.QUARANTINED, FileState.DELETING)
    assert not move(house, tenant, file_id, FileState.QUARANTINED, FileState.DELETING)
    assert listed(house, tenant) == []
    with pytest.raises(NotFound):
        get(house, tenant, file_id)


def test_the_same_bytes_are_found_under_the_same_subject(house: House, tenant: uuid.UUID) -> None:
    first, second = stored(house, tenant), stored(house, tenant)
    stored(house, tenant, TEAM, "cd" * 32)
    with house.open(tenant) as stores:
        same = stores.files.find_same(OWN, SHA)
        assert same is not None
        assert same.file_id == first
        assert stores.files.find_same(TEAM, SHA) is None
        assert stores.files.find_same(OWN, "cd" * 32) is None
    move(house, tenant, first, FileState.STORED, FileState.QUARANTINED)
    with house.open(tenant) as stores:
        same = stores.files.find_same(OWN, SHA)
    assert same is not None
    assert same.file_id == second


def test_files_are_listed_newest_first_in_pages(house: House, tenant: uuid.UUID) -> None:
    made = [stored(house, tenant, (OWN, TEAM)[number % 2]) for number in range(5)]
    seen: list[uuid.UUID] = []
    cursor: str | None = None
    for expected in (2, 2, 1):
        with house.open(tenant) as stores:
            page = stores.files.page(SUBJECTS, 2, cursor)
        assert len(page.items) == expected
        seen += [file.file_id for file in page.items]
        cursor = page.next_cursor
        # What comes in while somebody reads on is newer than their page.
        stored(house, tenant)
    assert cursor is None
    assert seen == made[::-1]


def test_a_list_goes_on_where_a_file_went_away(house: House, tenant: uuid.UUID) -> None:
    made = [stored(house, tenant) for _ in range(4)]
    with house.open(tenant) as stores:
        page = stores.files.page(SUBJECTS, 2, None)
    move(house, tenant, made[2], FileState.STORED, FileState.DELETING)
    with house.open(tenant) as stores:
        rest = stores.files.page(SUBJECTS, 2, page.next_cursor)
    assert [file.file_id for file in rest.items] == [made[1], made[0]]


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "2",
        "no cursor",
        "é\x00",
        "====",
        base64.urlsafe_b64encode(b"[1, 2]").decode(),
        base64.urlsafe_b64encode(b"[" * 300).decode(),
        base64.urlsafe_b64encode(b'["2026-01-01T00:00:00+00:00", "x"]').decode(),
    ],
)
def test_a_cursor_of_somebody_elses_is_refused(house: House, tenant: uuid.UUID, cursor: str) -> None:
    with house.open(tenant) as stores, pytest.raises(Invalid):
        stores.files.page(SUBJECTS, 2, cursor)
