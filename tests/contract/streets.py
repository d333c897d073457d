"""Task queues with ears: what was rung, in memory and on a real Redis."""

from __future__ import annotations

import base64
import json
import os
import select
import socket
import threading
import uuid
from dataclasses import dataclass
from typing import Any, Protocol

import redis

from pipeline.flow import Queue, Stage
from pipeline.ports import TaskQueue
from pipeline.testing.task_queue import MemoryTaskQueue
from pipeline.types import GenerationRef
from storage.task_queue import CeleryTaskQueue, producer

FLUSH_S = 20.0


@dataclass(frozen=True)
class Heard:
    """A stage bell as a worker hears it."""

    ref: GenerationRef
    stage: Stage
    unit: int | None = None
    alone: bool = False


class Street(Protocol):
    queue: TaskQueue

    def heard(self) -> list[Heard]:
        """Every stage bell so far, those of one queue in order."""

    def admissions(self) -> int:
        """How often an admission round was asked for."""

    def deletions(self) -> list[tuple[uuid.UUID, uuid.UUID]]:
        """Tenant and receipt of each deletion that was asked for."""


class MemoryStreet:
    def __init__(self) -> None:
        self._noted = MemoryTaskQueue()
        self.queue: TaskQueue = self._noted

    def heard(self) -> list[Heard]:
        return [Heard(bell.ref, bell.stage, bell.unit, bell.alone) for bell in self._noted.bells]

    def admissions(self) -> int:
        return self._noted.admissions

    def deletions(self) -> list[tuple[uuid.UUID, uuid.UUID]]:
        return self._noted.deletions


@dataclass(frozen=True)
class Message:
    """One message on the broker: queue, task, its arguments by name, the tasks chained after it, and all it carries."""

    queue: str
    task: str
    arguments: dict[str, Any]
    chain: list[dict[str, Any]]
    headers: dict[str, Any]


class RedisStreet:
    """The real producer, with a key prefix of its own; nobody consumes."""

    def __init__(self, url: str) -> None:
        # The producer's base settings are read at import; the broker is this street's own.
        os.environ.setdefault("DOCMILL_BROKER_URL", url)
        self._prefix = f"street-{uuid.uuid4().hex[:8]}:"
        self._app = producer(url, self._prefix)
        self._redis = redis.Redis.from_url(url)
        self.celery = CeleryTaskQueue(self._app)
        self.queue: TaskQueue = self.celery

    def close(self) -> None:
        self.celery.flush(FLUSH_S)
        if keys := list(self._redis.scan_iter(self._prefix + "*")):
            self._redis.delete(*keys)
        self.hang_up()

    def hang_up(self) -> None:
        """Leave the broker alone, whatever lies on it."""
        self._app.close()
        self._redis.close()

    def messages(self) -> list[Message]:
        """What lies on the broker, oldest first in each queue."""
        self.celery.flush(FLUSH_S)
        return [
            _message(str(queue), json.loads(raw))
            for queue in Queue
            for raw in reversed(self._redis.lrange(self._prefix + queue, 0, -1))
        ]

    def heard(self) -> list[Heard]:
        return [
            Heard(
                GenerationRef(
                    uuid.UUID(one.arguments["tenant"]), uuid.UUID(one.arguments["source"]), one.arguments["generation"]
                ),
                Stage(one.task.removeprefix("docmill.")),
                one.arguments.get("unit"),
                one.arguments.get("alone", False),
            )
            for one in self.messages()
            if one.task.removeprefix("docmill.") in list(Stage)
        ]

    def admissions(self) -> int:
        return sum(1 for one in self.messages() if one.task == "docmill.sweep.admission")

    def deletions(self) -> list[tuple[uuid.UUID, uuid.UUID]]:
        return [
            (uuid.UUID(one.arguments["tenant"]), uuid.UUID(one.arguments["receipt"]))
            for one in self.messages()
            if one.task == "docmill.delete"
        ]


def _message(queue: str, raw: dict[str, Any]) -> Message:
    positional, arguments, rest = json.loads(base64.b64decode(raw["body"]))
    assert positional == []
    # The task that runs next stands last.
    return Message(queue, raw["headers"]["task"], arguments, (rest["chain"] or [])[::-1], raw["headers"])


class Switchboard:
    """A port that accepts every connection: silent until it is put through to the real broker."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._through = threading.Event()
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self._server.getsockname()[1]}/0"

    def put_through(self) -> None:
        self._through.set()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        for one in self._open:
            one.close()
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._server.accept()
            except OSError:
                return  # closed
            self._open.append(caller)
            if self._through.is_set():
                called = socket.create_connection(self._target)
                self._open.append(called)
                self._threads.append(threading.Thread(target=_connect, args=(caller, called), daemon=True))
                self._threads[-1].start()


def _connect(caller: socket.socket, called: socket.socket) -> None:
    other = {caller: called, called: caller}
    try:
        while True:
            for one in select.select([caller, called], [], [])[0]:
                data = one.recv(65_536)
                if not data:
                    return
                other[one].sendall(data)
    except (OSError, ValueError):
        return  # one of them hung up
