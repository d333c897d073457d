"""What runs when. Every entry expires before its next turn, so that a backlog of sweeps cannot build up."""

from __future__ import annotations

from typing import Any

from pipeline.flow import Queue

_MAINTENANCE = str(Queue.MAINTENANCE)

SCHEDULE: dict[str, dict[str, Any]] = {
    # A lease of 20 s is believed; 5 s later its work is put back.
    "sweep.stuck-extractions": {
        "task": "docmill.sweep.stuck_extractions",
        "schedule": 5.0,
        "options": {"expires": 5, "queue": _MAINTENANCE},
    },
    # The fallback of the admission that uploads and finished documents ask for.
    "sweep.admission": {
        "task": "docmill.sweep.admission",
        "schedule": 5.0,
        "options": {"expires": 5, "queue": _MAINTENANCE},
    },
    "sweep.deletions": {
        "task": "docmill.sweep.deletions",
        "schedule": 30.0,
        "options": {"expires": 30, "queue": _MAINTENANCE},
    },
}
