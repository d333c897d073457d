"""`make demo` without its set-up."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
QUESTIONS = json.loads((ROOT / "examples" / "questions.json").read_text())


@pytest.mark.timeout(240)
def test_demo_answers_its_questions_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=220,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(QUESTIONS)} of {len(QUESTIONS)} answers as expected" in done.stdout
    answers = done.stdout.split("\n? ")[1:]
    assert len(answers) == len(QUESTIONS)
    for expected, answer in zip(QUESTIONS, answers, strict=True):
        page = f", page {expected['page']}" if expected["page"] else ""
        assert f"= {expected['file']}{page}\n" in answer or (expected["file"] is None and "= nothing (" in answer)
    assert list(tmp_path.iterdir()) == []
    assert [process.info["cmdline"] for process in _processes_of(tmp_path)] == []


def _processes_of(directory: Path) -> list[psutil.Process]:
    """Those with the directory on their command line, or as the place where they run."""
    return [
        process
        for process in psutil.process_iter(["cmdline", "cwd"])
        if str(directory) in " ".join(process.info["cmdline"] or []) + (process.info["cwd"] or "")
    ]
