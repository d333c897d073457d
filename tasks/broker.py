"""Redis as a broker, for a worker that is not ended by what is no message.

Kombu's transport lets the error of unreadable bytes out of the event loop, which ends the worker and every task it
runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from queue import Empty
from typing import Any

import structlog
from kombu.transport import redis

log = structlog.get_logger()


class Channel(redis.Channel):
    def _brpop_read(self, **options: Any) -> Any:
        try:
            return super()._brpop_read(**options)  # type: ignore[no-untyped-call]  # kombu is untyped
        except ValueError as problem:
            # Taken from its queue already; the loop is told that there was none.
            log.error("message.dropped", why=f"not readable ({type(problem).__name__})")  # noqa: TRY400 (its bytes are not ours to repeat)
            raise Empty from problem


class Transport(redis.Transport):
    Channel = Channel

    def _deliver(self, message: Any, queue: str) -> None:
        properties = message.get("properties") if isinstance(message, Mapping) else None
        if not isinstance(properties, Mapping) or "delivery_tag" not in properties or "body" not in message:
            log.error("message.dropped", why="no envelope", queue=queue)
            return
        super()._deliver(message, queue)  # type: ignore[no-untyped-call]  # likewise
