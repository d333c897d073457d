"""What every policy holds: own subject and memberships, narrowed by the token, read at the moment of use."""

from __future__ import annotations

import uuid
from typing import Protocol

import pytest
from sqlalchemy import text

from pipeline.ports import AuthorizationPolicy
from pipeline.testing.policy import MemoryPolicy
from pipeline.types import Principal
from storage.engine import tenant_transaction
from storage.identity import PostgresSubjects
from storage.policy import PostgresPolicy
from tests.contract.libraries import PostgresLibrary


class Town(Protocol):
    """A policy and the memberships it reads."""

    policy: AuthorizationPolicy

    def tenant(self) -> uuid.UUID: ...
    def join(self, tenant_id: uuid.UUID, subject: str, member: str) -> None: ...
    def leave(self, tenant_id: uuid.UUID, subject: str, member: str) -> None: ...


class InMemory:
    def __init__(self) -> None:
        held = MemoryPolicy()
        self.policy: AuthorizationPolicy = held
        self.join = held.join
        self.leave = held.leave

    def tenant(self) -> uuid.UUID:
        return uuid.uuid4()


class InPostgres:
    """Written and read by the gateway's role."""

    def __init__(self, library: PostgresLibrary) -> None:
        self._gateway = library.gateway
        self.policy: AuthorizationPolicy = PostgresPolicy(library.gateway)
        self.tenant = library.tenant

    def join(self, tenant_id: uuid.UUID, subject: str, member: str) -> None:
        with tenant_transaction(self._gateway, tenant_id) as connection:
            PostgresSubjects(connection, tenant_id).add_member(subject, member)
            connection.commit()

    def leave(self, tenant_id: uuid.UUID, subject: str, member: str) -> None:
        with tenant_transaction(self._gateway, tenant_id) as connection:
            connection.execute(
                text("DELETE FROM memberships WHERE tenant_id = :tenant AND subject = :subject AND member = :member"),
                {"tenant": tenant_id, "subject": subject, "member": member},
            )
            connection.commit()


@pytest.fixture(params=["memory", "postgres"])
def town(request: pytest.FixtureRequest) -> Town:
    return InMemory() if request.param == "memory" else InPostgres(request.getfixturevalue("in_postgres"))


def test_everyone_holds_their_own_subject_and_their_memberships(town: Town) -> None:
    here, elsewhere = town.tenant(), town.tenant()
    town.join(here, "team:red", "alice")
    town.join(here, "team:blue", "bob")
    town.join(elsewhere, "team:green", "alice")
    assert town.policy.effective_subjects(Principal(here, "alice")) == ("team:red", "user:alice")
    assert town.policy.effective_subjects(Principal(elsewhere, "alice")) == ("team:green", "user:alice")
    assert town.policy.effective_subjects(Principal(here, "nobody")) == ("user:nobody",)


def test_a_token_narrows_and_never_widens(town: Town) -> None:
    here = town.tenant()
    town.join(here, "team:red", "alice")
    town.join(here, "team:blue", "bob")

    def narrowed(*subjects: str) -> tuple[str, ...]:
        return town.policy.effective_subjects(Principal(here, "alice", narrowed_to=subjects))

    assert narrowed("team:red") == ("team:red",)
    assert narrowed("user:alice", "team:blue", "user:bob") == ("user:alice",)
    assert narrowed("team:blue") == ()
    assert narrowed() == ()


def test_a_revocation_counts_at_once(town: Town) -> None:
    here = town.tenant()
    town.join(here, "team:red", "alice")
    assert "team:red" in town.policy.effective_subjects(Principal(here, "alice"))
    town.leave(here, "team:red", "alice")
    assert town.policy.effective_subjects(Principal(here, "alice")) == ("user:alice",)


@pytest.mark.parametrize("user", ["'; DROP TABLE memberships; --", "alice' OR 'a' = 'a", "a%", "Alice", "alice "])
def test_a_hostile_name_holds_nothing_of_others(town: Town, user: str) -> None:
    here = town.tenant()
    town.join(here, "team:red", "alice")
    assert town.policy.effective_subjects(Principal(here, user)) == (f"user:{user}",)


@pytest.mark.parametrize("user", ["a\x00b", "\ud800"])
def test_a_name_that_cannot_be_stored_holds_nothing(town: Town, user: str) -> None:
    assert town.policy.effective_subjects(Principal(town.tenant(), user)) == ()
