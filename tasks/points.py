"""The two points of a stage that only Celery knows: after the chain was published, and before the acknowledgement."""

from __future__ import annotations

from typing import Any

from celery.signals import task_postrun, task_success

from pipeline.flow import Stage
from tasks import runtime
from tasks.base import StageTask


def _at(name: str, task: object) -> None:
    if isinstance(task, StageTask):
        runtime.faults().point(name, Stage(task.name.removeprefix("docmill.")))


@task_success.connect
def published(sender: Any = None, **_: Any) -> None:
    _at("published", sender)


@task_postrun.connect
def before_acknowledgement(task: Any = None, **_: Any) -> None:
    _at("pre-ack", task)
