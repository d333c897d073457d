"""The adapters that contracts are held by."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.engines.sandbox.process import SandboxProcess, running_sandbox
from pipeline.entrypoints.embedded.services import EmbeddedServices
from tests.conftest import DatabaseUrls
from tests.contract.libraries import Library, MemoryLibrary, PostgresLibrary
from tests.contract.presses import MemoryPress, Press, SandboxPress
from tests.contract.stores import House, MemoryHouse, PostgresHouse
from tests.state import State, open_state


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


@pytest.fixture(scope="session")
def state(database_urls: DatabaseUrls) -> Iterator[State]:
    opened = open_state(database_urls, pool_size=6)
    yield opened
    opened.worker.dispose()
    opened.superuser.dispose()


@pytest.fixture(params=["memory", "postgres"])
def house(request: pytest.FixtureRequest) -> House:
    return MemoryHouse() if request.param == "memory" else PostgresHouse(request.getfixturevalue("state"))


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxProcess]:
    jobs = ("file.inspect", "document.read", "pdf.read", "ocr.recognize")
    with running_sandbox(tmp_path_factory.mktemp("contract") / "run", preload=jobs) as process:
        yield process


@pytest.fixture(params=["memory", "sandbox"])
def press(request: pytest.FixtureRequest, tmp_path: Path) -> Press:
    if request.param == "memory":
        return MemoryPress(tmp_path)
    return SandboxPress(tmp_path, request.getfixturevalue("sandbox"))
