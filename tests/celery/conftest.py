"""A deployment per test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.entrypoints.embedded.services import EmbeddedServices
from tests.deployment import Deployment
from tests.services_host import MIGRATED


@pytest.fixture
def deployment(services: EmbeddedServices, tmp_path: Path) -> Iterator[Deployment]:
    """Over a database of its own: what another test left in flight would take its places at admission."""
    name = f"deployment_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    services.copy_database(MIGRATED, name)
    started = Deployment(services.settings_environment(name), services.database_url("postgres", name), tmp_path)
    yield started
    started.stop()
