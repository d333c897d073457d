"""SIGKILL of a pool child and of a worker's main process at every point of every stage of a ten-document ingest."""

from __future__ import annotations

import random
import signal
import time
from pathlib import Path

import psutil
import pytest
import redis

from pipeline.errors import FailureCode
from pipeline.flow import Queue, Stage
from pipeline.services.runner import LOSSES_ALONE
from storage.ledger import LOSSES_BEFORE_ALONE
from tests.deployment import MAIN_QUEUES, Deployment
from tests.faults import documents
from tests.faults.harness import (
    POINTS,
    RESTART_PAUSE_S,
    SHORT_LEASE,
    Failpoints,
    Supervisor,
    assert_all_published,
    attempts_beyond_kills,
    recorded,
    recovery_s,
)

# Ten documents are let in at once, so that six of them may be interrupted and the others go on.
ADMIT_ALL = {"DOCMILL_WORKER_PROCESSES": "8"}
RECOVERY_LIMIT_S = 30.0


@pytest.mark.faults
@pytest.mark.timeout(420)
@pytest.mark.fault(
    "T1",
    "SIGKILL of the pool child, once at each of 6 points of each of 7 stages, ten documents",
    "all published, none crashed, no chunk twice, attempts ≤ kills + 1",
)
def test_killed_children(
    deployment: Deployment, supervisor: Supervisor, tmp_path: Path, seed: int, observed: dict[str, object]
) -> None:
    failpoints = Failpoints(tmp_path, "kill-child", list(Stage))
    deployment.environment |= {**ADMIT_ALL, "DOCMILL_FAILPOINT": failpoints.setting}
    supervisor.keep(lambda: deployment.start_worker(concurrency=3))
    supervisor.keep(deployment.start_beat)
    principal = deployment.principal()
    with recorded(deployment, principal.tenant_id) as ledger:
        ids = [deployment.upload(principal, it.body, it.filename, it.media_type) for it in documents.ten(seed)]
        sources = deployment.wait_ended(principal, ids, 400)
    hits = failpoints.hits()
    recoveries = [seconds for hit in hits if (seconds := recovery_s(deployment, ledger, hit)) is not None]
    observed |= {
        "kills": len(hits),
        "longest recovery": f"{max(recoveries):.1f} s",
        "most attempts": deployment.sql(
            "SELECT max(attempts) FROM ingest_stages WHERE tenant_id = :t", t=principal.tenant_id
        )[0][0],
        "worker restarts": supervisor.restarts,
    }
    assert {(hit.stage, hit.point) for hit in hits} == set(failpoints.places)
    assert_all_published(deployment, principal, sources)
    assert attempts_beyond_kills(deployment, principal.tenant_id, hits) == []
    assert supervisor.restarts == 0


@pytest.mark.faults
@pytest.mark.timeout(420)
@pytest.mark.fault(
    "T2",
    "SIGKILL of the worker's main process, once at each of 6 points of each of 7 stages, ten documents a stage",
    "as T1, recovered in < 30 s, nothing of a killed worker left",
)
def test_killed_workers(
    deployment: Deployment, supervisor: Supervisor, tmp_path: Path, seed: int, observed: dict[str, object]
) -> None:
    failpoints = Failpoints(tmp_path, "kill-main", list(Stage))
    failpoints.disarm()
    deployment.environment |= {**ADMIT_ALL, "DOCMILL_FAILPOINT": failpoints.setting}
    main = [supervisor.keep(lambda: deployment.start_worker(MAIN_QUEUES, concurrency=1)) for _ in range(3)]
    # As deployed: the model lives in workers of one process each, which are their own main process.
    embed = [supervisor.keep(lambda: deployment.start_worker(Queue.EMBED, pool="solo")) for _ in range(2)]
    supervisor.keep(deployment.start_beat)
    principal = deployment.principal()
    ids = []

    def upload(document: documents.Document) -> None:
        ids.append(deployment.upload(principal, document.body, document.filename, document.media_type))

    def kill_at(stage: Stage, point: str, bait: documents.Document) -> None:
        """One of the stage's workers dies there while another is there to go on."""
        victims = embed if stage is Stage.EMBED else main
        deployment.wait_for(lambda: sum(worker.is_ready() for worker in victims) > 1, 60)
        ends = supervisor.ends
        failpoints.arm(stage, point)
        upload(bait)
        deployment.wait_for(lambda: supervisor.ends > ends, 60, lambda: f"nobody came to {stage} {point}")

    with recorded(deployment, principal.tenant_id) as ledger:
        for number, stage in enumerate(Stage):
            for document in documents.ten(seed + number)[4 * number % 10 :][:4]:
                upload(document)
            for turn, point in enumerate(POINTS):
                kill_at(stage, point, documents.meeting(stage, seed, turn))
        sources = deployment.wait_ended(principal, ids, 90)
    hits = failpoints.hits()
    recoveries = {
        f"{hit.stage}:{hit.point}": seconds
        for hit in hits
        if (seconds := recovery_s(deployment, ledger, hit)) is not None
    }
    slowest = max(recoveries, key=lambda place: recoveries[place])
    observed |= {
        "kills": len(hits),
        "documents": len(ids),
        "worker restarts": supervisor.restarts,
        "longest recovery": f"{recoveries[slowest]:.1f} s at {slowest}",
        **{f"longest at {stage}": f"{_longest(recoveries, stage):.1f} s" for stage in Stage},
    }
    assert {(hit.stage, hit.point) for hit in hits} == set(failpoints.places)
    assert_all_published(deployment, principal, sources)
    assert attempts_beyond_kills(deployment, principal.tenant_id, hits) == []
    assert recoveries[slowest] < RECOVERY_LIMIT_S
    assert supervisor.restarts == len(hits)
    assert _orphans(deployment) == []


@pytest.mark.faults
@pytest.mark.fault(
    "T1",
    "SIGKILL of the pool child as a 40-page PDF is divided, and as its first unit is finished",
    "as T1; no unit lost or done twice",
)
def test_killed_between_division_and_bells(
    deployment: Deployment, supervisor: Supervisor, tmp_path: Path, seed: int, observed: dict[str, object]
) -> None:
    failpoints = Failpoints(tmp_path, "kill-child", [Stage.EXTRACT], ["result-written", "committed"])
    failpoints.marker(Stage.EXTRACT, "result-written").touch()  # armed once it is divided
    deployment.environment |= {**SHORT_LEASE, "DOCMILL_FAILPOINT": failpoints.setting}
    supervisor.keep(deployment.start_worker)
    supervisor.keep(deployment.start_beat)
    principal = deployment.principal()
    body = documents.long_pdf(random.Random(seed), 40)
    with recorded(deployment, principal.tenant_id) as ledger:
        ids = [deployment.upload(principal, body, "manual.pdf", "application/pdf")]
        deployment.wait_for(failpoints.marker(Stage.EXTRACT, "committed").exists, 60)
        failpoints.arm(Stage.EXTRACT, "result-written")
        sources = deployment.wait_ended(principal, ids, 120)
    divided, finished = failpoints.hits()
    observed |= {
        "divided, units in hand after": f"{recovery_s(deployment, ledger, divided):.1f} s",
        "unit in hand again after": f"{recovery_s(deployment, ledger, finished):.1f} s",
    }
    assert (divided.unit, finished.unit is None) == (None, False)
    assert_all_published(deployment, principal, sources)
    assert sources[0].pages == 40
    assert attempts_beyond_kills(deployment, principal.tenant_id, [divided, finished]) == []


@pytest.mark.faults
@pytest.mark.fault(
    "T11",
    "an image that kills its pool child every time, among ten other documents",
    "it ends crashed at the cap, the others are published, the queues drain",
)
def test_a_document_that_always_kills_its_worker(
    deployment: Deployment, supervisor: Supervisor, tmp_path: Path, seed: int, observed: dict[str, object]
) -> None:
    failpoints = Failpoints(tmp_path, "kill-child-always", [Stage.OCR], ["bytes-read"])
    deployment.environment |= {**SHORT_LEASE, "DOCMILL_FAILPOINT": failpoints.setting}
    supervisor.keep(deployment.start_worker)
    supervisor.keep(deployment.start_beat)
    principal = deployment.principal()
    bomb = deployment.upload(principal, documents.image(random.Random(seed)), "bomb.png", "image/png")
    notes = [documents.short(seed, number) for number in range(10)]
    ids = [deployment.upload(principal, note.body, note.filename, note.media_type) for note in notes]
    began = time.monotonic()
    sources = deployment.wait_ended(principal, ids, 60)
    others = time.monotonic() - began
    (crashed,) = deployment.wait_ended(principal, [bomb], 110)
    kills = len(failpoints.hits())
    observed |= {"kills": kills, "others published after": f"{others:.0f} s", "worker restarts": supervisor.restarts}
    assert {source.status for source in sources} == {"ready"}
    assert crashed.latest.failure is not None
    assert crashed.latest.failure.code is FailureCode.CRASHED
    assert kills == LOSSES_BEFORE_ALONE + LOSSES_ALONE
    deployment.wait_for(lambda: _waiting_messages(deployment) == 0, 40)
    assert supervisor.restarts == 0


def _waiting_messages(deployment: Deployment) -> int:
    """Messages in every queue of documents; the sweeps' come and go."""
    prefix = deployment.environment["DOCMILL_BROKER_KEY_PREFIX"]
    with redis.Redis.from_url(deployment.environment["DOCMILL_BROKER_URL"]) as client:
        return sum(int(str(client.llen(f"{prefix}{queue}"))) for queue in Queue if queue is not Queue.MAINTENANCE)


@pytest.mark.faults
@pytest.mark.fault(
    "T26",
    "SIGTERM of each of two workers in turn, under load, each started again",
    "nothing lost, nothing published or tried twice",
)
def test_rolling_restart_under_load(
    deployment: Deployment, supervisor: Supervisor, seed: int, observed: dict[str, object]
) -> None:
    deployment.environment |= ADMIT_ALL
    workers = [supervisor.keep(lambda: deployment.start_worker(concurrency=1)) for _ in range(2)]
    supervisor.keep(deployment.start_beat)
    principal = deployment.principal()
    deployment.wait_for(lambda: all(worker.is_ready() for worker in workers), 60)
    ids, leaving = [], []
    load = [*documents.ten(seed), *(documents.short(seed, number) for number in range(20))]
    for number, it in enumerate(load):
        ids.append(deployment.upload(principal, it.body, it.filename, it.media_type))
        if number in (5, 20):
            restarts, began = supervisor.restarts, time.monotonic()
            victim = workers[number == 20]
            victim.process.send_signal(signal.SIGTERM)
            deployment.wait_for(lambda restarts=restarts: supervisor.restarts > restarts, 40)  # type: ignore[misc]
            leaving.append(time.monotonic() - began - RESTART_PAUSE_S)
            deployment.wait_for(victim.is_ready, 60)
    sources = deployment.wait_ended(principal, ids, 120)
    attempts = deployment.sql("SELECT max(attempts) FROM ingest_stages WHERE tenant_id = :t", t=principal.tenant_id)
    observed |= {
        "documents": len(ids),
        "gone after": ", ".join(f"{seconds:.1f} s" for seconds in leaving),
        "most attempts": attempts[0][0],
    }
    assert_all_published(deployment, principal, sources)
    assert attempts == [(1,)]
    assert supervisor.restarts == 2


def _longest(recoveries: dict[str, float], stage: Stage) -> float:
    return max((seconds for place, seconds in recoveries.items() if place.startswith(stage)), default=0.0)


def _orphans(deployment: Deployment) -> list[str]:
    """Processes of the deployment whose worker is gone."""
    living = {process.pid for process in deployment.processes if process.poll() is None}
    found = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        command = " ".join(process.info["cmdline"] or ())
        if str(deployment.directory) not in command or process.pid in living:
            continue
        if not living & {parent.pid for parent in process.parents()}:
            found.append(command)
    return found
