"""Scheduled and requested housekeeping: admission, stuck work, deletions."""

from __future__ import annotations

import uuid
from typing import Any

import structlog

from pipeline.errors import TransientError
from tasks import runtime
from tasks.app import app
from tasks.base import FLUSH_S, DocmillTask

log = structlog.get_logger()


@app.task(name="docmill.sweep.admission", base=DocmillTask, time_limit=60)
def admission() -> None:
    try:
        bells = runtime.services().admission.admit()
    except TransientError as problem:
        log.warning("sweep.postponed", sweep="admission", why=problem.detail)
        return
    runtime.task_queue().ring(bells)
    runtime.task_queue().flush(FLUSH_S)


@app.task(name="docmill.sweep.stuck_extractions", base=DocmillTask, time_limit=120)
def stuck_extractions() -> None:
    try:
        bells = runtime.services().sweeps.stuck()
    except TransientError as problem:
        log.warning("sweep.postponed", sweep="stuck-extractions", why=problem.detail)
        return
    runtime.task_queue().ring(bells)
    runtime.task_queue().flush(FLUSH_S)


@app.task(name="docmill.sweep.deletions", base=DocmillTask, time_limit=600)
def deletions() -> None:
    try:
        runtime.services().sweeps.deletions()
    except TransientError as problem:
        log.warning("sweep.postponed", sweep="deletions", why=problem.detail)


@app.task(name="docmill.delete", base=DocmillTask, bind=True, time_limit=600)
def delete(self: DocmillTask, **message: Any) -> None:
    if not self.is_spoken(message["version"]):
        return
    try:
        runtime.services().deletions.carry_out(uuid.UUID(message["tenant"]), uuid.UUID(message["receipt"]))
    except TransientError as problem:
        log.warning("deletion.postponed", receipt=message["receipt"], why=problem.detail)
