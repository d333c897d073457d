"""Holds each test folder to its budget: seconds of work, summed over its tests however many run side by side.

A plugin for `make test` (``-p tests.budget``). The table in CONTRIBUTING.md shows these numbers.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePosixPath

import pytest

BUDGETS_S = {
    "unit": 200,
    "contract": 200,
    "integration": 600,
    "sandbox": 150,
    "celery": 450,
    "faults": 400,
    "e2e": 180,
}

_spent: defaultdict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Called in the main process for every phase of every test, those of parallel workers included."""
    _spent[PurePosixPath(report.nodeid).parts[1]] += report.duration


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if _over() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for folder, seconds in sorted(_spent.items()):
        terminalreporter.write_line(f"tests/{folder}: {seconds:.0f} s of {BUDGETS_S.get(folder, 0)} s")
    for folder in _over():
        terminalreporter.write_line(f"ERROR: tests/{folder} is over its budget", red=True)


def _over() -> list[str]:
    return [folder for folder, seconds in sorted(_spent.items()) if seconds > BUDGETS_S.get(folder, 0)]
