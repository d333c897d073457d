"""The Celery application of the workers, beat and Flower."""

from __future__ import annotations

from celery import Celery

app = Celery("docmill", include=["tasks.stages", "tasks.sweeps", "tasks.runtime", "tasks.points"])
app.config_from_object("celeryconfig")
