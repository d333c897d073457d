"""What a worker's tasks took, as log events: a worker has no HTTP port of its own to be scraped."""

from __future__ import annotations

import structlog

from pipeline.flow import Stage
from pipeline.services.runner import Step

log = structlog.get_logger()


def observe(stage: Stage, seconds: float, step: Step) -> None:
    """One event a task: its stage, wall seconds and whether the chain goes on."""
    log.info("stage.ran", stage=str(stage), seconds=round(seconds, 4), next=str(step.next), bells=len(step.bells))
