"""Server-sent events of one source, by looking at the ledger: nothing is remembered in a broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
from pydantic import BaseModel

from pipeline.entrypoints.gateway import shapes
from pipeline.errors import NotFound, TransientError
from pipeline.records import Source
from pipeline.services.reading import ReadingService
from pipeline.types import GenerationStatus, Principal

MEDIA_TYPE = "text/event-stream"
# Looks at the ledger that all streams together may make at once: requests keep their threads and connections.
CONCURRENT_LOOKS = 4
_LOOK_S = 0.3
# A source that stands still, in a long queue or a long page, is looked at less and less often.
_SLOWEST_LOOK_S = 1.5
_SLOWER = 1.2
_HEARTBEAT_S = 10.0
_LIVE = frozenset({GenerationStatus.QUEUED, GenerationStatus.INGESTING})


class StageEvent(BaseModel):
    generation: int
    stage: str | None
    status: GenerationStatus
    queue: shapes.QueueShape | None


class ProgressEvent(BaseModel):
    stage: str | None
    done: int
    total: int


class GoneEvent(BaseModel):
    """The last event of a source that was removed, or that the caller may not see any more."""

    code: str = "not_found"
    detail: str = "No such source."


class Watch:
    """``looks`` bounds how many streams look at once. Permission is checked at every look."""

    def __init__(
        self, reading: ReadingService, principal: Principal, source_id: uuid.UUID, looks: anyio.CapacityLimiter
    ) -> None:
        self._reading = reading
        self._principal = principal
        self._source_id = source_id
        self._looks = looks

    async def stream(self, source: Source) -> AsyncIterator[bytes]:
        """Events from the state ``source`` is in to the end of its newest attempt."""
        told: tuple[BaseModel, BaseModel] | None = None
        pause, spoke_at = _LOOK_S, time.monotonic()
        while True:
            now = _stage(source), _progress(source)
            news = _news(told, now)
            if news or time.monotonic() - spoke_at >= _HEARTBEAT_S:
                yield news or b": still here\n\n"
                spoke_at = time.monotonic()
            if source.latest.status not in _LIVE:
                yield _event("done", shapes.source_shape(source))
                return
            pause = _LOOK_S if news else min(pause * _SLOWER, _SLOWEST_LOOK_S)
            told = now
            await anyio.sleep(pause)
            try:
                source = await anyio.to_thread.run_sync(self._look, limiter=self._looks)
            except NotFound:
                yield _event("done", GoneEvent())
                return
            except TransientError:
                # The ledger is away for a moment; the stream goes on when it is back.
                continue

    def _look(self) -> Source:
        return self._reading.source(self._principal, self._source_id)


def _stage(source: Source) -> StageEvent:
    queue = source.queue
    return StageEvent(
        generation=source.latest.generation,
        stage=source.stage,
        status=source.latest.status,
        queue=shapes.QueueShape(position=queue.position, eta_s=queue.eta_s) if queue is not None else None,
    )


def _progress(source: Source) -> ProgressEvent:
    return ProgressEvent(stage=source.stage, done=source.progress_done, total=source.progress_total)


def _news(told: tuple[BaseModel, BaseModel] | None, now: tuple[BaseModel, BaseModel]) -> bytes:
    stage, progress = now
    events = _event("stage", stage) if told is None or told[0] != stage else b""
    return events + (_event("progress", progress) if told is None or told[1] != progress else b"")


def _event(name: str, data: BaseModel) -> bytes:
    """JSON has no raw line end, so one data line is enough."""
    return f"event: {name}\ndata: {data.model_dump_json()}\n\n".encode()
