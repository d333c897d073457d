"""The Celery application of the workers, beat and Flower."""

from __future__ import annotations

from celery import Celery
from kombu.transport import TRANSPORT_ALIASES

from pipeline.errors import ConfigurationError

# By the scheme of the broker's URL, as kombu looks them up.
TRANSPORT_ALIASES.update(redis="tasks.broker:Transport", rediss="tasks.broker:Transport")

app = Celery("docmill", include=["tasks.stages", "tasks.sweeps", "tasks.runtime", "tasks.points"])
try:
    # Now, not on first use: a wrong setting is one line at the start, not a traceback out of Celery.
    app.config_from_object("celeryconfig", force=True)
except ConfigurationError as problem:
    raise SystemExit(f"error: {problem}") from problem
