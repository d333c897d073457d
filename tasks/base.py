"""The base task: log context, retry policy for lost children, bells after commit."""

from __future__ import annotations

import time
import uuid
from typing import Any

import structlog
from celery import Task

from pipeline.errors import TransientError
from pipeline.flow import MESSAGE_VERSION, Stage
from pipeline.services.runner import Next
from pipeline.types import GenerationRef
from tasks import metrics, runtime

log = structlog.get_logger()

# Bells are published by a background thread; a child that is recycled right after a task must not lose them.
FLUSH_S = 2.0


class DocmillTask(Task):
    """Every task of the project. A child that dies is retried twice, after its lease has ended."""

    abstract = True
    acks_late = True

    def is_spoken(self, version: int) -> bool:
        """Whether the message is of a version this worker knows; others are left to the sweep."""
        if version == MESSAGE_VERSION:
            return True
        log.warning("message.unknown_version", task=self.name, version=version)
        return False


class StageTask(DocmillTask):
    """Runs one stage, or one unit of one, and decides whether the chain goes on."""

    abstract = True

    def execute(self, stage: Stage, message: dict[str, Any]) -> None:
        if not self.is_spoken(message["version"]):
            self.request.chain = None
            return
        ref = GenerationRef(uuid.UUID(message["tenant"]), uuid.UUID(message["source"]), int(message["generation"]))
        unit = message.get("unit")
        started = time.monotonic()
        with structlog.contextvars.bound_contextvars(
            tenant=str(ref.tenant_id), source=str(ref.source_id), generation=ref.generation, stage=str(stage), unit=unit
        ):
            try:
                step = runtime.services().runner.run(ref, stage, unit, alone=bool(message.get("alone")))
            except TransientError as problem:
                # Not even the ledger could be told. The sweep rings again once Postgres answers.
                log.warning("stage.ledger_unreachable", why=problem.detail)
                self.request.chain = None
                return
        metrics.observe(stage, time.monotonic() - started, step)
        if step.next is Next.STOP:
            self.request.chain = None
        self._ring(step.bells, ended=step.ended)

    def _ring(self, bells: Any, *, ended: bool) -> None:
        queue = runtime.task_queue()
        if ended:
            try:
                bells = (*bells, *runtime.services().admission.admit())
            except TransientError as problem:
                log.warning("admission.postponed", why=problem.detail)
        if bells:
            queue.ring(bells)
            queue.flush(FLUSH_S)
