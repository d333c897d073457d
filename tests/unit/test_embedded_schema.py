"""What a child prepares comes back to the supervisor, its errors as the one line to show."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.entrypoints.embedded import schema
from pipeline.errors import ConfigurationError, TransientError


@pytest.fixture(autouse=True)
def _no_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "_migrate", lambda _: None)


def test_the_token_comes_back_from_another_process(tmp_path: Path) -> None:
    def issue(environment: Mapping[str, str]) -> str:
        return f"{environment['DOCMILL_JWT_SECRET']} {os.getpid()}"

    secret, pid = schema.prepare({"DOCMILL_JWT_SECRET": "ключ"}, tmp_path / "log", issue).split()
    assert secret == "ключ"
    assert int(pid) != os.getpid()


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (ConfigurationError("no such tenant"), "no such tenant"),
        (TransientError("postgres", "connection lost"), "postgres: connection lost"),
        (ValueError("a bug"), "preparing the database failed; the cause is above"),
    ],
)
def test_a_failure_is_one_line(
    tmp_path: Path, problem: Exception, line: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def issue(environment: Mapping[str, str]) -> str:
        raise problem

    with pytest.raises(ConfigurationError, match=f"^{line}$"):
        schema.prepare({}, tmp_path / "log", issue)
    assert ("ValueError: a bug" in capfd.readouterr().err) is isinstance(problem, ValueError)
