"""A data directory may lie deep: a socket's path has 107 bytes at most, a directory's has thousands."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import text

from pipeline.entrypoints.embedded.services import EmbeddedServices
from storage.engine import build_engine


def test_the_servers_start_below_a_long_path(tmp_path: Path) -> None:
    directory = tmp_path / ("d" * 120)
    with EmbeddedServices(directory) as services:
        assert services.content_store().stat("nothing") is None
        engine = build_engine(services.database_url("postgres"), pool_size=1, application="tests")
        with engine.begin() as connection:
            assert connection.execute(text("SELECT 1")).scalar_one() == 1
        engine.dispose()
