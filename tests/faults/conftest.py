"""A deployment per test, its supervisor, the seed of a run, and what a test tells the report."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.entrypoints.embedded.services import EmbeddedServices
from tests.deployment import Deployment
from tests.faults.harness import Supervisor, supervised
from tests.faults.servers import Servers, running
from tests.services_host import MIGRATED

SEED_VARIABLE = "FAULTS_SEED"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "fault(number, done, expected): a row of the table that make faults prints")


@pytest.fixture
def deployment(services: EmbeddedServices, tmp_path: Path) -> Iterator[Deployment]:
    """Over a database of its own: what another test left in flight would take its places at admission."""
    name = f"deployment_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    services.copy_database(MIGRATED, name)
    started = Deployment(services.settings_environment(name), services.database_url("postgres", name), tmp_path)
    yield started
    started.stop()


@pytest.fixture
def supervisor(deployment: Deployment) -> Iterator[Supervisor]:
    """Stopped before the deployment is."""
    with supervised(deployment) as started:
        yield started


@pytest.fixture
def seed() -> int:
    return int(os.environ.get(SEED_VARIABLE, "1"))


@pytest.fixture
def observed(request: pytest.FixtureRequest) -> Iterator[dict[str, object]]:
    """Figures for the report, by name."""
    figures: dict[str, object] = {}
    yield figures
    request.node.user_properties.append(("observed", {name: str(value) for name, value in figures.items()}))


@pytest.fixture(scope="module")
def own_servers() -> Iterator[Servers]:
    """Servers of one module of tests, which it may kill."""
    with (
        tempfile.TemporaryDirectory(prefix="docmill-faults-", dir="/tmp") as directory,
        running(Path(directory)) as own,
    ):
        yield own
