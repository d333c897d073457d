"""Redis frozen, killed, and fed with what is no message; uploads, the workers and the documents must not care."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import jwt
import pytest
import redis

from pipeline.entrypoints.embedded import network
from pipeline.entrypoints.embedded.processes import GATEWAY_FACTORY
from pipeline.flow import Queue
from pipeline.types import Principal
from storage.task_queue import producer
from tests.deployment import REPOSITORY, Deployment
from tests.faults import documents
from tests.faults.harness import Supervisor, assert_all_published, supervised
from tests.faults.servers import Servers
from tests.inputs import pictures

ANSWER_LIMIT_S = 1.0
UPLOADERS = 3


@pytest.fixture
def deployment(own_servers: Servers, tmp_path: Path) -> Iterator[Deployment]:
    """On servers that no other test uses at this time."""
    services = own_servers.services
    started = Deployment(services.settings_environment(), services.database_url("postgres"), tmp_path)
    yield started
    started.stop()


@contextmanager
def gateway(deployment: Deployment) -> Iterator[httpx.Client]:
    """A gateway of its own process, and a client of it."""
    port = network.free_port()
    address = ("--host", network.LOOPBACK, "--port", str(port))
    log = (deployment.directory / "gateway.log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "--factory", GATEWAY_FACTORY, *address, "--no-access-log"],
        cwd=REPOSITORY,
        env={**os.environ, **deployment.environment},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    log.close()
    deployment.processes.append(process)
    with httpx.Client(base_url=f"http://{network.LOOPBACK}:{port}", timeout=30) as client:

        def answers() -> bool:
            try:
                return client.get("/healthz").status_code == 200
            except httpx.TransportError:
                return False

        deployment.wait_for(answers, 60)
        yield client


def token(deployment: Deployment, principal: Principal) -> dict[str, str]:
    claims = {"tenant": str(principal.tenant_id), "sub": principal.user, "exp": int(time.time()) + 3600}
    signed = jwt.encode(claims, deployment.environment["DOCMILL_JWT_SECRET"], algorithm="HS256")
    return {"Authorization": f"Bearer {signed}"}


class Load:
    """Uploads by several clients at once, a few each second, and how long each answer took."""

    def __init__(self, client: httpx.Client, headers: dict[str, str], seed: int) -> None:
        self._client = client
        self._headers = headers
        self._seed = seed
        self.took_s: list[float] = []
        self.refused: list[str] = []

    def run(self, seconds: float, pause_s: float) -> None:
        threads = [threading.Thread(target=self._upload, args=(one, seconds, pause_s)) for one in range(UPLOADERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _upload(self, uploader: int, seconds: float, pause_s: float) -> None:
        deadline = time.monotonic() + seconds
        number = 0
        while time.monotonic() < deadline:
            note = documents.short(self._seed, number, f"load-{uploader}")
            began = time.monotonic()
            answer = self._client.post(
                "/v1/files", headers=self._headers, files={"file": (note.filename, note.body, note.media_type)}
            )
            self.took_s.append(time.monotonic() - began)
            if answer.status_code != 201:
                self.refused.append(answer.text)
            number += 1
            time.sleep(pause_s)

    @property
    def p99_s(self) -> float:
        return sorted(self.took_s)[max(0, -(-99 * len(self.took_s) // 100) - 1)]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("seconds", "pause_s"),
    [pytest.param(5, 0.8, id="5s"), pytest.param(60, 2.4, id="60s", marks=pytest.mark.faults)],
)
@pytest.mark.fault(
    "T13",
    "Redis SIGSTOP while three clients upload over HTTP",
    "every answer in < 1 s, all documents processed later",
)
def test_a_frozen_broker_delays_no_upload(
    deployment: Deployment,
    supervisor: Supervisor,
    own_servers: Servers,
    seed: int,
    observed: dict[str, object],
    seconds: float,
    pause_s: float,
) -> None:
    principal = deployment.principal()
    supervisor.keep(deployment.start_worker)
    supervisor.keep(deployment.start_beat)
    with gateway(deployment) as client:
        load = Load(client, token(deployment, principal), seed)
        load.run(1, 1)
        load.took_s.clear()
        with own_servers.frozen("redis"):
            load.run(seconds, pause_s)
        thawed = time.monotonic()
    ids = _sources(deployment, principal)
    sources = deployment.wait_ended(principal, ids, 200)
    observed |= {
        "frozen for": f"{seconds} s",
        "uploads": len(load.took_s),
        "p99": f"{load.p99_s * 1000:.0f} ms",
        "slowest": f"{max(load.took_s) * 1000:.0f} ms",
        "all published after": f"{time.monotonic() - thawed:.0f} s",
        "worker restarts": supervisor.restarts,
    }
    assert load.refused == []
    assert max(load.took_s) < ANSWER_LIMIT_S
    assert_all_published(deployment, principal, sources)


def _sources(deployment: Deployment, principal: Principal) -> list[uuid.UUID]:
    rows = deployment.sql("SELECT source_id FROM sources WHERE tenant_id = :t", t=principal.tenant_id)
    return [uuid.UUID(str(source_id)) for (source_id,) in rows]


@pytest.mark.faults
@pytest.mark.fault(
    "T14",
    "Redis killed, six uploads, Redis started again",
    "every upload succeeds, all published once the broker is up",
)
def test_uploads_while_the_broker_is_down_are_ingested_once_it_is_up(
    deployment: Deployment, supervisor: Supervisor, own_servers: Servers, seed: int, observed: dict[str, object]
) -> None:
    principal = deployment.principal()
    supervisor.keep(deployment.start_worker)
    supervisor.keep(deployment.start_beat)
    deployment.wait_for(lambda: "@test ready." in deployment.logs(), 60)
    own_servers.kill("redis")
    took, ids = [], []
    for number in range(6):
        note = documents.short(seed, number)
        began = time.monotonic()
        ids.append(deployment.upload(principal, note.body, note.filename, note.media_type))
        took.append(time.monotonic() - began)
    assert deployment.sql("SELECT count(*) FROM ingest_stages WHERE tenant_id = :t", t=principal.tenant_id) == [(6,)]
    own_servers.start("redis")
    up = time.monotonic()
    sources = deployment.wait_ended(principal, ids, 90)
    observed |= {
        "slowest upload": f"{max(took) * 1000:.0f} ms",
        "all published after": f"{time.monotonic() - up:.1f} s",
        "worker restarts": supervisor.restarts,
    }
    assert max(took) < ANSWER_LIMIT_S
    assert_all_published(deployment, principal, sources)


@pytest.mark.faults
@pytest.mark.fault(
    "T48",
    "Redis killed under a running task, started again 2 s later",
    "the worker carries on or is restarted, the task's effect happens once",
)
def test_a_broker_that_dies_under_a_running_task(
    deployment: Deployment, supervisor: Supervisor, own_servers: Servers, seed: int, observed: dict[str, object]
) -> None:
    principal = deployment.principal()
    supervisor.keep(deployment.start_worker)
    supervisor.keep(deployment.start_beat)
    pages = [pictures.page(f"Page {number} of run {seed}.", *pictures.SENTENCES) for number in range(6)]
    ids = [deployment.upload(principal, pictures.scan_pdf(*pages), "scan.pdf", "application/pdf")]
    deployment.wait_for(lambda: _running(deployment, principal) == [("ocr",)], 60)
    own_servers.kill("redis")
    time.sleep(2)
    own_servers.start("redis")
    up = time.monotonic()
    sources = deployment.wait_ended(principal, ids, 120)
    attempts = deployment.sql("SELECT attempts FROM ingest_stages WHERE source_id = :s AND stage = 'ocr'", s=ids[0])
    finished = deployment.logs().count('"stage": "ocr", "seconds"')
    observed |= {
        "worker restarts": supervisor.restarts,
        "attempts at ocr": attempts[0][0],
        "published after": f"{time.monotonic() - up:.1f} s",
    }
    assert_all_published(deployment, principal, sources)
    assert sources[0].pages == 6
    assert attempts[0][0] in (1, 2)
    assert finished >= 1


def _running(deployment: Deployment, principal: Principal) -> list[tuple[object, ...]]:
    return deployment.sql(
        "SELECT stage FROM ingest_stages WHERE tenant_id = :t AND status = 'running'", t=principal.tenant_id
    )


@pytest.mark.fault(
    "T38",
    "pickle, an unknown task, garbage bytes, a wrong envelope and a 10 MB message in the queue",
    "dropped, the worker is never restarted and goes on",
)
def test_what_is_no_message_is_dropped(
    deployment: Deployment, supervisor: Supervisor, seed: int, observed: dict[str, object]
) -> None:
    principal = deployment.principal()
    supervisor.keep(deployment.start_worker)
    supervisor.keep(deployment.start_beat)
    url, prefix = deployment.environment["DOCMILL_BROKER_URL"], deployment.environment["DOCMILL_BROKER_KEY_PREFIX"]
    app = producer(url, prefix)
    app.send_task("docmill.unknown", kwargs={}, queue=str(Queue.INTERACTIVE))
    app.send_task("docmill.chunk", kwargs={"version": 1}, queue=str(Queue.INTERACTIVE))
    ids = {"version": 1, "tenant": str(principal.tenant_id), "source": str(principal.tenant_id), "generation": 1}
    app.send_task("docmill.chunk", kwargs={**ids, "padding": "x" * 10_000_000}, queue=str(Queue.INTERACTIVE))
    app.send_task("docmill.chunk", kwargs=ids, queue=str(Queue.INTERACTIVE), serializer="pickle")
    app.close()
    with redis.Redis.from_url(url) as client:
        for garbage in (b"\x80\x04garbage", b"", b"{", json.dumps([1, 2]), json.dumps({}), b"null", b"\xff" * 1000):
            client.lpush(f"{prefix}{Queue.INTERACTIVE}", garbage)
        note = documents.short(seed, 1)
        source_ids = [deployment.upload(principal, note.body, note.filename, note.media_type)]
        sources = deployment.wait_ended(principal, source_ids, 90)
        # A sweep's message may be in hand at any one moment, but not at all of them.
        deployment.wait_for(
            lambda: client.llen(f"{prefix}{Queue.INTERACTIVE}") + client.hlen(f"{prefix}unacked") == 0, 20
        )
    observed["worker restarts"] = supervisor.restarts
    assert_all_published(deployment, principal, sources)
    assert supervisor.restarts == 0


@pytest.fixture
def supervisor(deployment: Deployment) -> Iterator[Supervisor]:
    with supervised(deployment) as started:
        yield started
