"""Where Postgres can live, and who may reach it."""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg2
import pytest

from pipeline.entrypoints.embedded import account, binaries, network
from pipeline.entrypoints.embedded.layout import Layout
from pipeline.entrypoints.embedded.postgres import Postgres
from pipeline.entrypoints.embedded.process import Process, wait_until
from pipeline.errors import ConfigurationError
from tests.conftest import REPOSITORY

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root needs another account for Postgres")
Start = Callable[[Path], Postgres]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a server below a directory; all are stopped at the end."""
    running: list[Process] = []

    def begin(directory: Path) -> Postgres:
        layout = Layout(directory)
        layout.prepare()
        server = Postgres(layout, network.free_port())
        server.prepare()
        running.append(Process(server.spec()))
        assert wait_until(server.is_ready, 30), (layout.logs / "postgres.log").read_text()
        return server

    yield begin
    for process in running:
        process.stop()


def test_a_path_too_long_for_a_socket_takes_the_loopback_address(start: Start, tmp_path: Path) -> None:
    server = start(tmp_path / ("deep" * 25))
    assert server.host == "127.0.0.1"
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(server.dsn("postgres", "postgres"), password="wrong")


def test_a_short_path_opens_no_port(start: Start, tmp_path: Path) -> None:
    directory = tmp_path / "d"
    server = start(directory)
    assert server.host == str(directory / "run")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), 1)
    with pytest.raises(psycopg2.OperationalError, match="no password supplied"):
        psycopg2.connect(server.dsn("postgres", "postgres"), password="")


def test_it_is_kind_to_a_small_machine_and_keeps_what_it_was_given(start: Start, tmp_path: Path) -> None:
    server = start(tmp_path / "d")
    connection = psycopg2.connect(server.dsn("postgres", "postgres"))
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'jit', 'max_connections')")
        assert dict(cursor.fetchall()) == {"fsync": "on", "jit": "off", "max_connections": "100"}
        cursor.execute("SELECT lower('ÄÉЖ'), datlocprovider FROM pg_database WHERE datname = 'template0'")
        assert cursor.fetchone() == ("äéж", "b")
    connection.close()


@as_root
def test_a_directory_closed_to_the_account_stays_closed(start: Start, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    start(closed / "data")
    assert closed.stat().st_mode & 0o777 == 0o700
    assert closed.stat().st_uid == 0
    assert not (closed / "data" / "pg-binaries").exists()


@as_root
def test_without_private_mounts_a_closed_directory_is_refused(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(account, "can_cover", lambda: False)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(ConfigurationError, match=r"the account docmill-pg may not pass .*choose a --data directory"):
        start(closed / "data")


@as_root
def test_without_private_mounts_programs_out_of_reach_are_copied(
    start: Start, open_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    wheel = binaries.postgres()
    moved = dataclasses.replace(
        wheel, home=closed / "package" / wheel.home.name, libraries=closed / wheel.libraries.name
    )
    shutil.copytree(wheel.home, moved.home, symlinks=True)
    shutil.copytree(wheel.libraries, moved.libraries, symlinks=True)
    monkeypatch.setattr(account, "can_cover", lambda: False)
    monkeypatch.setattr(binaries, "postgres", lambda: moved)
    start(open_directory)
    assert (open_directory / "pg-binaries").stat().st_uid == 0


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A data directory that every account may pass through, as one below /var/lib would be."""
    directory = Path(f"/tmp/docmill-open-{os.getpid()}")
    yield directory
    shutil.rmtree(directory)


@as_root
def test_data_of_another_owner_is_refused(start: Start, tmp_path: Path) -> None:
    (tmp_path / "d" / "pg").mkdir(parents=True)
    with pytest.raises(ConfigurationError, match="belongs to user 0, Postgres would run as user"):
        start(tmp_path / "d")


def test_an_operator_runs_bootstrap_sql_with_psql(start: Start, tmp_path: Path) -> None:
    server = start(tmp_path / "d")
    for _ in range(2):
        ran = subprocess.run(
            [
                binaries.postgres().home / "bin" / "psql", "--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1",
                "-f", REPOSITORY / "deploy" / "sql" / "bootstrap.sql", server.dsn("postgres", "postgres"),
            ],
            capture_output=True,
            text=True,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        assert "ERROR" not in ran.stderr
    connection = psycopg2.connect(server.dsn("postgres", "docmill"))
    with connection, connection.cursor() as cursor:
        cursor.execute("SELECT extname FROM pg_extension WHERE extname = 'vector'")
        assert cursor.fetchone() == ("vector",)
        cursor.execute("SELECT count(*) FROM pg_roles WHERE rolname LIKE 'docmill\\_%'")
        assert cursor.fetchone() == (6,)
    connection.close()
