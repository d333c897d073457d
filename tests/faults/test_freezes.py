"""A worker that stands still past its lease, in its work and in a transaction."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from pipeline.flow import Stage
from pipeline.services.deletion import DeletionService
from pipeline.services.sweeps import SweepService
from pipeline.types import Principal
from tests.conftest import DatabaseUrls
from tests.deployment import Deployment
from tests.faults import documents
from tests.faults.harness import SHORT_LEASE, Failpoints, Supervisor, assert_all_published
from tests.state import open_state


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


@pytest.mark.fault(
    "T4",
    "a row is locked by a transaction that does not go on, two other leases have ended",
    "the sweep rings for the others and does not wait for the lock",
)
def test_a_frozen_transaction_does_not_stop_the_sweep(database_urls: DatabaseUrls, observed: dict[str, object]) -> None:
    state = open_state(database_urls)
    refs = [state.admitted() for _ in range(3)]
    for ref in refs:
        state.claimed(ref, Stage.REGISTER)
        state.expire(ref)
    unused = cast("DeletionService", None)
    sweeps = SweepService(state.finder, state.units, unused, 600)
    with state.units(refs[0].tenant_id) as frozen:
        frozen.ledger.progress(refs[0], Stage.REGISTER, 1, 2)
        began = time.monotonic()
        rung = {bell.ref for bell in sweeps.stuck()}
        took = time.monotonic() - began
    assert rung & set(refs) == {refs[1], refs[2]}
    assert refs[0] in {bell.ref for bell in sweeps.stuck()}
    observed["sweep took"] = f"{took * 1000:.0f} ms"
    assert took < 2
    state.worker.dispose()
    state.superuser.dispose()
