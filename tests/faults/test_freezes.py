"""A worker that stands still past its lease, and a broker that does."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from pipeline.flow import Stage
from pipeline.types import Principal
from tests.deployment import Deployment
from tests.faults import documents
from tests.faults.harness import Failpoints, Supervisor, assert_all_published

SHORT_LEASE = {"DOCMILL_LEASE_S": "3", "DOCMILL_HEARTBEAT_S": "0.5"}


@pytest.mark.fault(
    "T4",
    "SIGSTOP of a pool child past its lease, another worker finishes the document, SIGCONT",
    "the zombie's write changes nothing",
)
def test_a_frozen_worker_finds_its_work_done(
    deployment: Deployment, supervisor: Supervisor, tmp_path: Path, seed: int, observed: dict[str, object]
) -> None:
    failpoints = Failpoints(tmp_path, "stop", [Stage.CHUNK], ["bytes-read"])
    deployment.environment |= {**SHORT_LEASE, "DOCMILL_FAILPOINT": failpoints.setting}
    supervisor.keep(lambda: deployment.start_worker(concurrency=2))
    supervisor.keep(deployment.start_beat)
    principal = deployment.principal()
    note = documents.short(seed, 1)
    ids = [deployment.upload(principal, note.body, note.filename, note.media_type)]
    sources = deployment.wait_ended(principal, ids, 60)
    assert_all_published(deployment, principal, sources)
    before = _state(deployment, principal)
    (hit,) = failpoints.hits()
    os.kill(hit.pid, signal.SIGCONT)
    deployment.wait_for(lambda: "stage.abandoned" in deployment.logs(), 20)
    assert _state(deployment, principal) == before
    assert_all_published(deployment, principal, sources)
    attempts = deployment.sql("SELECT attempts FROM ingest_stages WHERE source_id = :s AND stage = 'chunk'", s=ids[0])
    observed |= {"attempts at chunk": attempts[0][0], "zombie": "gave up: the lease was another's"}
    assert attempts == [(2,)]


def _state(deployment: Deployment, principal: Principal) -> Sequence[object]:
    """Everything the zombie could have written."""
    return [
        deployment.sql(f"SELECT * FROM {table} WHERE tenant_id = :t ORDER BY 1, 2, 3, 4", t=principal.tenant_id)
        for table in ("sources", "generations", "ingest_stages", "chunks", "chunk_terms", "blocks")
    ]
