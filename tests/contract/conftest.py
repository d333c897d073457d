"""The index adapters a contract is held by."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from tests.conftest import DatabaseUrls
from tests.contract.libraries import Library, MemoryLibrary, PostgresLibrary


@pytest.fixture(scope="session")
def in_postgres(database_urls: DatabaseUrls) -> Iterator[PostgresLibrary]:
    library = PostgresLibrary(database_urls)
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
