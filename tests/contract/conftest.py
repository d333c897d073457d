"""The index adapters a contract is held by."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from pipeline.entrypoints.embedded.services import EmbeddedServices
from tests.contract.libraries import Library, MemoryLibrary, PostgresLibrary


@pytest.fixture(scope="session")
def in_postgres(services: EmbeddedServices) -> Iterator[PostgresLibrary]:
    library = PostgresLibrary(services)
    yield library
    library.close()


@pytest.fixture(params=["memory", "postgres"])
def library(request: pytest.FixtureRequest) -> Library:
    if request.param == "memory":
        return MemoryLibrary()
    shared: PostgresLibrary = request.getfixturevalue("in_postgres")
    return shared


@pytest.fixture
def tenant(library: Library) -> uuid.UUID:
    return library.tenant()
