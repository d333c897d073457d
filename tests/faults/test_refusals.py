"""Settings that would multiply work are refused at the start, in one line."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from pipeline import flow
from tests.deployment import REPOSITORY

HARD_LIMIT = flow.LONGEST_HARD_LIMIT_S


@pytest.mark.parametrize("process", ["worker", "beat"])
@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        pytest.param(
            "DOCMILL_VISIBILITY_TIMEOUT_S",
            str(HARD_LIMIT),
            f"error: DOCMILL_VISIBILITY_TIMEOUT_S is {HARD_LIMIT}; it expects more than the longest task limit,"
            f" {HARD_LIMIT} seconds, or long tasks would run twice",
            id="visibility-timeout",
        ),
        pytest.param(
            "DOCMILL_BROKER_URL",
            "",
            "error: DOCMILL_BROKER_URL is not set; it expects a Redis or RabbitMQ URL",
            id="broker",
        ),
    ],
)
@pytest.mark.fault("T16", "a visibility timeout that is no longer than the longest task", "start refused in one line")
def test_the_start_is_refused(process: str, setting: str, value: str, says: str) -> None:
    environment = {**os.environ, "DOCMILL_BROKER_URL": "redis://127.0.0.1:1/0", setting: value}
    ended = subprocess.run(
        [sys.executable, "-m", "celery", "-A", "tasks.app:app", process],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 1
    assert (ended.stdout, ended.stderr.strip()) == ("", says)
