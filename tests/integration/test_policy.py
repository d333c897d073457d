"""Effective subjects out of the memberships table."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, text

from pipeline.entrypoints.embedded.services import EmbeddedServices
from pipeline.types import Principal
from storage.engine import tenant_transaction
from storage.identity import PostgresSubjects
from storage.policy import PostgresPolicy
from tests.contract.libraries import PostgresLibrary


@pytest.fixture
def library(services: EmbeddedServices) -> Iterator[PostgresLibrary]:
    made = PostgresLibrary(services)
    yield made
    made.close()


def change(engine: Engine, tenant: uuid.UUID, statement: str) -> None:
    with tenant_transaction(engine, tenant) as connection:
        connection.execute(text(statement), {"tenant": tenant})
        connection.commit()


def join(engine: Engine, tenant: uuid.UUID, subject: str, member: str) -> None:
    with tenant_transaction(engine, tenant) as connection:
        PostgresSubjects(connection, tenant).add_member(subject, member)
        connection.commit()


def test_everyone_holds_their_own_subject_and_their_memberships(library: PostgresLibrary) -> None:
    here, elsewhere = library.tenant(), library.tenant()
    policy = PostgresPolicy(library.gateway)
    join(library.gateway, here, "team:red", "alice")
    join(library.gateway, here, "team:blue", "bob")
    join(library.gateway, elsewhere, "team:green", "alice")
    assert policy.effective_subjects(Principal(here, "alice")) == ("team:red", "user:alice")
    assert policy.effective_subjects(Principal(elsewhere, "alice")) == ("team:green", "user:alice")
    assert policy.effective_subjects(Principal(here, "nobody")) == ("user:nobody",)


def test_a_token_narrows_and_never_widens(library: PostgresLibrary) -> None:
    here = library.tenant()
    policy = PostgresPolicy(library.gateway)
    join(library.gateway, here, "team:red", "alice")

    def narrowed(*subjects: str) -> tuple[str, ...]:
        return policy.effective_subjects(Principal(here, "alice", narrowed_to=subjects))

    assert narrowed("team:red") == ("team:red",)
    assert narrowed("user:alice", "team:blue", "user:bob") == ("user:alice",)
    assert narrowed("team:blue") == ()
    assert narrowed() == ()


def test_a_revocation_counts_at_once(library: PostgresLibrary) -> None:
    here = library.tenant()
    policy = PostgresPolicy(library.gateway)
    join(library.gateway, here, "team:red", "alice")
    assert "team:red" in policy.effective_subjects(Principal(here, "alice"))
    change(library.gateway, here, "DELETE FROM memberships WHERE tenant_id = :tenant AND member = 'alice'")
    assert policy.effective_subjects(Principal(here, "alice")) == ("user:alice",)


@pytest.mark.parametrize("user", ["a\x00b", "\ud800", "'; DROP TABLE memberships; --"])
def test_a_hostile_name_holds_nothing_of_others(library: PostgresLibrary, user: str) -> None:
    here = library.tenant()
    join(library.gateway, here, "team:red", "alice")
    held = PostgresPolicy(library.gateway).effective_subjects(Principal(here, user))
    assert set(held) <= {f"user:{user}"}
