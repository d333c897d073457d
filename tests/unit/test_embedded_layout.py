"""The data directory, the programs and the account, without starting anything."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipeline.entrypoints.embedded import account, binaries, layout, processes
from pipeline.errors import ConfigurationError
from pipeline.flow import Queue


def test_a_secret_is_made_once_and_private(tmp_path: Path) -> None:
    place = layout.Layout(tmp_path / "data")
    place.prepare()
    first = place.secret("redis")
    assert len(first) == 32
    assert place.secret("redis") == first
    assert place.secret("other") != first
    assert stat.S_IMODE((place.secrets / "redis").stat().st_mode) == 0o600
    assert stat.S_IMODE(place.secrets.stat().st_mode) == 0o700


def test_an_existing_directory_keeps_its_permissions(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    layout.Layout(data).prepare()
    assert stat.S_IMODE(data.stat().st_mode) == 0o755


def test_a_full_disk_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100 * 1024**2))
    with pytest.raises(ConfigurationError, match=r"only 100 MiB are free below .*, 1024 are needed; free some space"):
        layout.Layout(tmp_path / "data").prepare()


def test_the_default_directory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCMILL_DATA", "/srv/docmill")
    assert layout.default_data_directory() == Path("/srv/docmill")
    monkeypatch.delenv("DOCMILL_DATA")
    monkeypatch.setenv("HOME", "/home/someone")
    assert layout.default_data_directory() == Path("/home/someone/.local/share/docmill")


@pytest.mark.parametrize(
    ("find", "named"),
    [(binaries.postgres, "Postgres 18"), (binaries.redis_server, "redis-server"), (binaries.weed, "weed")],
)
def test_a_missing_program_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, find: object, named: str, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert callable(find)
    with pytest.raises(ConfigurationError, match=rf"{named}.*not found; .*pip install 'docmill\[embedded\]'"):
        find()


def test_an_old_redis_on_the_path_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for version, chosen in (("6.0.16", False), ("7.2.4", True)):
        program = tmp_path / "redis-server"
        program.write_text(f"#!/bin/sh\necho 'Redis server v={version} sha=0 malloc=libc bits=64'\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
        assert (binaries.redis_server() == program) is chosen


def test_the_topmost_closed_directory_is_found(tmp_path: Path) -> None:
    ourselves = account.Identity(os.geteuid(), os.getegid())
    closed = tmp_path / "open" / "closed"
    (closed / "also").mkdir(parents=True)
    paths = (closed / "also" / "x", closed / "y", tmp_path / "z")
    assert account.closed_directories(paths, ourselves) == ()
    closed.chmod(0o600)
    try:
        assert account.closed_directories(paths, ourselves) == (closed,)
    finally:
        closed.chmod(0o700)


def test_every_queue_has_one_worker_instance() -> None:
    plan = processes.Plan(
        host="127.0.0.1",
        port=8000,
        url="http://127.0.0.1:8000",
        worker_processes=3,
        beat_schedule="/data/work/beat-schedule",
        flower_port=5555,
        flower_password="hidden",
    )
    started = {application.name: application for application in processes.applications(plan)}
    assert list(started) == ["worker", "embed", "beat", "gateway", "flower"]
    queues = {
        name: set(started[name].command[started[name].command.index("--queues") + 1].split(","))
        for name in ("worker", "embed")
    }
    assert queues["embed"] == {Queue.EMBED}
    assert queues["worker"] == set(Queue) - {Queue.EMBED}
    assert started["worker"].command[-5:] == ("prefork", "--concurrency", "3", "--loglevel", "INFO")
    assert "hidden" not in " ".join(" ".join(application.command) for application in started.values())


def test_flower_can_be_switched_off() -> None:
    plan = processes.Plan("127.0.0.1", 8000, "http://127.0.0.1:8000", 2, "/data/beat", None, "hidden")
    assert "flower" not in {application.name for application in processes.applications(plan)}
