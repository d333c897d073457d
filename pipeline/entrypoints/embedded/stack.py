"""``docmill up``: the whole of Docmill on one machine, below one data directory."""

from __future__ import annotations

import fcntl
import json
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TextIO

import structlog

from pipeline.entrypoints.embedded import keeper, layout, network, processes
from pipeline.errors import ConfigurationError

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What ``docmill up`` was asked for.

    ``port`` None means 8000 or the next free one; a port that was asked for is taken or refused. ``issue_token`` makes
    the development bearer token once the database is migrated; it is given the stack's environment.
    """

    issue_token: Callable[[Mapping[str, str]], str]
    data: Path | None = None
    host: str = network.LOOPBACK
    port: int | None = None
    workers: int = 2
    flower: bool = True
    ready_file: Path | None = None
    applications: Callable[[processes.Plan], tuple[processes.Application, ...]] = processes.applications


def run_stack(options: UpOptions) -> int:
    """Run until a signal stops it. Returns 0 after SIGINT, SIGTERM or SIGHUP; 1 with one line on stderr otherwise.

    ``ready http://HOST:PORT`` is all it writes on stdout.
    """
    place = layout.Layout((options.data or layout.default_data_directory()).absolute())
    try:
        place.prepare()
        lock = _lock(place)
    except ConfigurationError as refusal:
        _say(f"error: {refusal}")
        return 1
    with lock:
        return keeper.keep(lambda: _supervise(options, place))


def _lock(place: layout.Layout) -> TextIO:
    lock = place.lock.open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        where = f"running at {json.loads(place.state.read_text())['url']}" if place.state.exists() else "starting"
        raise ConfigurationError(f"a stack with the data of {place.root} is already {where}") from None
    place.state.unlink(missing_ok=True)
    return lock


class _Stopped(BaseException):
    """A signal asked for the end. Not an error: no handler of errors may swallow it."""


def _supervise(options: UpOptions, place: layout.Layout) -> int:
    """In the supervisor's own process."""
    # Imported here, so that the keeper, which needs none of it, stays small.
    from pipeline.entrypoints.embedded.running import RunningStack

    _log_to(place.logs / "supervisor.log")
    stack = RunningStack(place, _say)

    def kill(_number: int, _frame: FrameType | None) -> None:
        stack.kill()

    def stop(_number: int, _frame: FrameType | None) -> None:
        _handle_with(kill)
        raise _Stopped

    code = 0
    try:
        _handle_with(stop)
        stack.start(
            host=options.host,
            port=options.port,
            workers=options.workers,
            flower=options.flower,
            issue_token=options.issue_token,
            applications=options.applications,
        )
        sys.stdout.write(f"ready {stack.url}\n")
        sys.stdout.flush()
        if options.ready_file is not None:
            options.ready_file.touch()
        stack.watch()
    except _Stopped:
        _say("stopping; once more to stop at once")
    except ConfigurationError as failure:
        _say(f"error: {failure}")
        code = 1
    finally:
        _handle_with(kill)
        keeper.adopt_orphans()
        stack.stop()
        keeper.end_descendants(0.0)
    return code


def _log_to(file: Path) -> None:
    """This process's events, one JSON object a line; stdout is for the ready line alone."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.JSONRenderer(),
        ],
        logger_factory=structlog.WriteLoggerFactory(file.open("a", buffering=1)),
    )


def _handle_with(handler: Callable[[int, FrameType | None], None]) -> None:
    for number in _STOP_SIGNALS:
        signal.signal(number, handler)


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()
