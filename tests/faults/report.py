"""Prints what the fault tests did, expected and saw, at the end of a run. A plugin (``-p tests.faults.report``)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

import pytest
from rich.console import Console
from rich.table import Table

from tests.faults.catalogue import ELSEWHERE, LEFT_OUT
from tests.faults.conftest import SEED_VARIABLE

_WIDTH = 160


@dataclass
class Line:
    """One line of the table, of one test or of several."""

    number: str
    done: str
    expected: str
    tests: int = 0
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    observed: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        if self.failed:
            return "FAILED"
        if not self.tests:
            return "not run"
        return "skipped" if len(self.skipped) == self.tests else "held"


_lines: dict[tuple[str, str], Line] = {}


def pytest_report_header() -> str:
    return f"faults: {_seed()}"


def _seed() -> str:
    return f"{SEED_VARIABLE}={os.environ.get(SEED_VARIABLE, '1')}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tell each test's report which lines it belongs to, as the report does not know the test's marks."""
    for item in items:
        mark = item.get_closest_marker("fault")
        if mark is not None:
            item.user_properties.append(("fault", list(mark.args)))
        for row in ELSEWHERE:
            if item.nodeid.startswith(row.tests):
                item.user_properties.append(("fault", [row.number, row.done, row.expected]))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    faults = [value for name, value in report.user_properties if name == "fault"]
    for number, done, expected in (map(str, fault) for fault in faults if isinstance(fault, list)):
        line = _lines.setdefault((number, done), Line(number, done, expected))
        line.seconds += report.duration
        if report.failed:
            line.failed.append(report.nodeid)
        if report.when == "call" or report.skipped:
            line.tests += 1
        if report.skipped:
            line.skipped.append(report.nodeid)
        if report.when == "teardown":
            line.observed += [_figures(value) for name, value in report.user_properties if name == "observed"]


def _figures(value: object) -> str:
    return "; ".join(f"{name} {figure}" for name, figure in value.items()) if isinstance(value, dict) else str(value)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    table = Table(title=f"Faults, {_seed()}", show_lines=True)
    for heading in ("fault", "done", "expected", "observed", "verdict"):
        table.add_column(heading, no_wrap=heading in ("fault", "verdict"))
    for line in sorted(_lines.values(), key=lambda line: int(line.number[1:])):
        seen = [f"{line.tests} tests" if line.tests > 1 else "1 test", f"{line.seconds:.0f} s"]
        observed = ", ".join(seen) + "".join(f"\n{figures}" for figures in line.observed)
        table.add_row(line.number, line.done, line.expected, observed, line.verdict)
    left_out = Table(title="Left out", show_header=False)
    for number, why in LEFT_OUT.items():
        left_out.add_row(number, why)
    console = Console(width=_WIDTH, color_system=None)
    with console.capture() as captured:
        console.print(table)
        console.print(left_out)
    terminalreporter.write_line("")
    for text in captured.get().splitlines():
        terminalreporter.write_line(text.rstrip())
