"""Failpoints for fault tests: a process kills, stops or delays itself at a named point. Off unless asked for."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from celery import current_task

from pipeline.flow import Stage
from pipeline.services.runner import Faults, NoFaults

# A hang outlasts every lease and limit.
DELAY_S = 3600.0
# Repeats at every passing; every other action happens once, whichever process comes first.
ALWAYS = "kill-child-always"


class Failpoint:
    """Acts at one point of one stage: ``kill-child``, ``kill-child-always``, ``kill-main``, ``stop`` or ``hang``.

    ``marker`` is written first, a line for each time: when it was, which process and which message.
    """

    def __init__(self, stage: str, point: str, act: Callable[[], None], marker: Path, *, once: bool) -> None:
        self._place = (point, stage)
        self._act = act
        self._marker = marker
        self._once = once

    def point(self, name: str, stage: Stage) -> None:
        if (name, str(stage)) != self._place:
            return
        try:
            with self._marker.open("x" if self._once else "a") as marker:
                marker.write(_circumstances())
        except FileExistsError:
            return
        self._act()


class Failpoints:
    """Several of them; the first that fits and has not happened yet acts."""

    def __init__(self, failpoints: tuple[Failpoint, ...]) -> None:
        self._failpoints = failpoints

    def point(self, name: str, stage: Stage) -> None:
        for failpoint in self._failpoints:
            failpoint.point(name, stage)


def faults_of(failpoints: str | None, main_pid: int) -> Faults:
    """``stage:point:action:marker``, several of them separated by ``;``, as an adapter."""
    if not failpoints:
        return NoFaults()
    actions: dict[str, Callable[[], None]] = {
        "kill-child": _kill_child,
        ALWAYS: _kill_child,
        "kill-main": lambda: _kill_main(main_pid),
        "stop": lambda: os.kill(os.getpid(), signal.SIGSTOP),
        "hang": lambda: time.sleep(DELAY_S),
    }
    parts = (failpoint.split(":", 3) for failpoint in failpoints.split(";"))
    return Failpoints(
        tuple(
            Failpoint(stage, point, actions[action], Path(marker), once=action != ALWAYS)
            for stage, point, action, marker in parts
        )
    )


def _kill_child() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_main(main_pid: int) -> None:
    os.kill(main_pid, signal.SIGKILL)
    _kill_child()


def _circumstances() -> str:
    return json.dumps({"at": time.time(), "pid": os.getpid(), "message": current_task.request.kwargs}) + "\n"
