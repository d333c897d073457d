"""Docmill's own processes as data: what runs, how it is asked to stop, and how it shows that it works."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pipeline.flow import Queue

CELERY_APP = "tasks.app:app"
GATEWAY_FACTORY = "pipeline.entrypoints.gateway.app:serve"
FLOWER_USER = "docmill"
_NODE_HOST = "docmill"
# A worker hands back what it holds within its soft shutdown time of 20 s (celeryconfig.py).
_WORKER_GRACE_S = 25.0


class Proof(StrEnum):
    """How an application process shows that it works."""

    ALIVE = "alive"
    HTTP_ANSWER = "http-answer"
    READYZ = "readyz"
    WORKER_PING = "worker-ping"


@dataclass(frozen=True, slots=True)
class Application:
    """One process. ``target`` is what ``proof`` asks: a URL, or a Celery node name."""

    name: str
    command: tuple[str, ...]
    proof: Proof
    target: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    grace_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What the command lines depend on. ``flower_port`` is None when Flower is switched off."""

    host: str
    port: int
    url: str
    worker_processes: int
    beat_schedule: str
    flower_port: int | None
    flower_password: str


def applications(plan: Plan) -> tuple[Application, ...]:
    """In the order they are started; they are stopped in the reverse one."""
    main_queues = ",".join(queue for queue in Queue if queue is not Queue.EMBED)
    found = [
        _worker("worker", "main", main_queues, ("--pool", "prefork", "--concurrency", str(plan.worker_processes))),
        # The model lives in this one process: it is never loaded in a forking worker.
        _worker("embed", "embed", Queue.EMBED, ("--pool", "solo")),
        Application("beat", _celery("beat", "--schedule", plan.beat_schedule, "--pidfile="), Proof.ALIVE),
        Application(
            "gateway",
            (
                *(sys.executable, "-m", "uvicorn", "--factory", GATEWAY_FACTORY),
                *("--host", plan.host, "--port", str(plan.port), "--no-access-log", "--no-server-header"),
                # An event stream may last for hours; a stop does not wait for its end.
                *("--timeout-graceful-shutdown", "3"),
            ),
            Proof.READYZ,
            f"{plan.url}/readyz",
        ),
    ]
    if plan.flower_port is not None:
        found.append(_flower(plan.flower_port, plan.flower_password))
    return tuple(found)


def ping_command(node: str) -> tuple[str, ...]:
    """Exits 0 when the node answers."""
    return _celery("inspect", "ping", "--destination", node, "--timeout", "1")


def _worker(name: str, node: str, queues: str, pool: tuple[str, ...]) -> Application:
    node_name = f"{node}@{_NODE_HOST}"
    return Application(
        name,
        _celery("worker", "--hostname", node_name, "--queues", queues, *pool, "--loglevel", "INFO"),
        Proof.WORKER_PING,
        node_name,
        # SIGTERM then means: give back unfinished work and leave.
        environment={"REMAP_SIGTERM": "SIGQUIT"},
        grace_s=_WORKER_GRACE_S,
    )


def _flower(port: int, password: str) -> Application:
    return Application(
        "flower",
        _celery("flower", "--address=127.0.0.1", f"--port={port}"),
        Proof.HTTP_ANSWER,
        f"http://127.0.0.1:{port}/",
        # Not on the command line, which everybody on the machine can read.
        environment={"FLOWER_BASIC_AUTH": f"{FLOWER_USER}:{password}"},
    )


def _celery(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "celery", "-A", CELERY_APP, *arguments)
