"""A worker's directory goes when its worker is gone, and not before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tasks import workdir

MADE_AND_LEFT = "import pathlib, sys; from tasks import workdir; print(workdir.make(pathlib.Path(sys.argv[1])))"


def test_what_an_ended_worker_left_is_taken_away_and_a_living_ones_stays(tmp_path: Path) -> None:
    left = subprocess.run(
        [sys.executable, "-c", MADE_AND_LEFT, str(tmp_path)], check=True, capture_output=True, text=True
    )
    abandoned = Path(left.stdout.strip())
    (abandoned / "files").mkdir()
    (abandoned / "files" / "original").write_bytes(b"bytes")
    foreign = tmp_path / "notes"
    foreign.mkdir()
    first = workdir.make(tmp_path)
    assert not abandoned.exists()
    second = workdir.make(tmp_path)
    assert {first, second, foreign} == set(tmp_path.iterdir())


def test_one_that_is_being_made_is_left_alone_and_an_old_one_without_a_lock_is_not(tmp_path: Path) -> None:
    being_made, old = tmp_path / "docmill-worker-new", tmp_path / "docmill-worker-old"
    being_made.mkdir()
    old.mkdir()
    os.utime(old, (1, 1))
    made = workdir.make(tmp_path)
    assert set(tmp_path.iterdir()) == {being_made, made}
