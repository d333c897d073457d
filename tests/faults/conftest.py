"""A deployment per test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.entrypoints.embedded.services import EmbeddedServices
from tests.conftest import DatabaseUrls
from tests.deployment import Deployment


@pytest.fixture
def deployment(
    services: EmbeddedServices, database_name: str, database_urls: DatabaseUrls, tmp_path: Path
) -> Iterator[Deployment]:
    started = Deployment(services.settings_environment(database_name), database_urls.superuser, tmp_path)
    yield started
    started.stop()
