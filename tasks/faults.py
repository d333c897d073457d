"""Failpoints for fault tests: a process kills, stops or delays itself at a named point. Off unless asked for."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pipeline.flow import Stage
from pipeline.services.runner import Faults, NoFaults

# A hang outlasts every lease and limit.
DELAY_S = 3600.0


class Failpoint:
    """Acts once, at one point of one stage: ``kill-child``, ``kill-main``, ``stop`` or ``hang``."""

    def __init__(self, stage: str, point: str, action: str, marker: Path) -> None:
        self._stage = stage
        self._point = point
        self._action = action
        self._marker = marker

    def point(self, name: str, stage: Stage) -> None:
        if (name, str(stage)) != (self._point, self._stage):
            return
        try:
            self._marker.touch(exist_ok=False)
        except FileExistsError:
            return
        if self._action == "kill-main":
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        elif self._action == "kill-child":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self._action == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self._action == "hang":
            time.sleep(DELAY_S)


def faults_of(failpoint: str | None) -> Faults:
    """``stage:point:action:marker`` as an adapter; the action happens once, the marker file is made first."""
    if not failpoint:
        return NoFaults()
    stage, point, action, marker = failpoint.split(":", 3)
    return Failpoint(stage, point, action, Path(marker))
