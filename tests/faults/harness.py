"""What fault tests add to a deployment: processes that are restarted when they end, and a record of the ledger."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import Popen

from sqlalchemy import text

from pipeline import flow
from pipeline.flow import Stage
from pipeline.records import Source
from pipeline.types import Principal
from tests.deployment import Deployment

# A supervisor has an ended process running again within 2 s; its pause before the start is up to 1.5 s.
RESTART_PAUSE_S = 1.0
# Leases of tests that wait for several of them to end.
SHORT_LEASE = {"DOCMILL_LEASE_S": "3", "DOCMILL_HEARTBEAT_S": "0.5"}
_POLL_S = 0.1
POINTS = ("claimed", "bytes-read", "result-written", "committed", "published", "pre-ack")
# Where a stage that is interrupted has not been committed yet.
BEFORE_COMMIT = frozenset({"claimed", "bytes-read", "result-written"})

Start = Callable[[], "Popen[bytes]"]


class Kept:
    """One process under supervision; ``log`` is that of its newest instance."""

    def __init__(self, deployment: Deployment, start: Start) -> None:
        self._deployment = deployment
        self._start = start
        self._start_at: float | None = None
        self.ends = 0
        self.restarts = 0
        self.run()

    def run(self) -> None:
        before = set(self._deployment.directory.glob("*.log"))
        self.process = self._start()
        (self.log,) = set(self._deployment.directory.glob("*.log")) - before

    def is_ready(self) -> bool:
        """Whether it is a worker that takes messages."""
        return self.process.poll() is None and b"@test ready." in self.log.read_bytes()

    def tend(self) -> None:
        if self.process.poll() is None:
            return
        if self._start_at is None:
            self._start_at = time.monotonic() + RESTART_PAUSE_S
            self.ends += 1
        elif time.monotonic() >= self._start_at:
            self._start_at = None
            self.run()
            self.restarts += 1


class Supervisor:
    """Starts what ended again, in a thread of the test, until the test is over."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._kept: list[Kept] = []
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="test-supervisor")
        self._thread.start()

    def keep(self, start: Start) -> Kept:
        with self._lock:
            kept = Kept(self._deployment, start)
            self._kept.append(kept)
        return kept

    @property
    def ends(self) -> int:
        return sum(kept.ends for kept in self._kept)

    @property
    def restarts(self) -> int:
        return sum(kept.restarts for kept in self._kept)

    def stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_POLL_S):
            with self._lock:
                for kept in self._kept:
                    kept.tend()


@contextmanager
def supervised(deployment: Deployment) -> Iterator[Supervisor]:
    supervisor = Supervisor(deployment)
    try:
        yield supervisor
    finally:
        supervisor.stop()


@dataclass(frozen=True)
class Seen:
    """A row of the ledger as it was at one time."""

    at: float
    source: str
    stage: str
    unit: int | None
    attempts: int
    status: str


@dataclass
class Ledger:
    """What the stages and units of a tenant went through, looked at ten times a second."""

    seen: list[Seen] = field(default_factory=list)

    def second_claim(self, source: str, stage: str, unit: int | None, after: float) -> float | None:
        """When the row was first seen claimed again after ``after``."""
        rows = [row for row in self.seen if (row.source, row.stage, row.unit) == (source, stage, unit)]
        before = max((row.attempts for row in rows if row.at <= after), default=1)
        return next((row.at for row in rows if row.at > after and row.attempts > max(before, 1)), None)


@contextmanager
def recorded(deployment: Deployment, tenant_id: uuid.UUID) -> Iterator[Ledger]:
    """Record changes of the tenant's ledger for the length of a ``with`` block."""
    ledger, over = Ledger(), threading.Event()
    latest: dict[tuple[str, str, int | None], tuple[int, str]] = {}
    statement = text(
        "SELECT source_id::text, stage, NULL::int AS unit, attempts, status FROM ingest_stages WHERE tenant_id = :t"
        " UNION ALL SELECT source_id::text, stage, unit, attempts, status FROM ingest_units WHERE tenant_id = :t"
    )

    def look() -> None:
        with deployment.superuser.connect() as connection:
            while not over.wait(_POLL_S):
                rows = connection.execute(statement, {"t": tenant_id}).all()
                connection.rollback()
                for source, stage, unit, attempts, status in rows:
                    if latest.get((source, stage, unit)) != (attempts, status):
                        latest[source, stage, unit] = (attempts, status)
                        ledger.seen.append(Seen(time.time(), source, stage, unit, attempts, status))

    thread = threading.Thread(target=look, name="ledger-recorder")
    thread.start()
    try:
        yield ledger
    finally:
        over.set()
        thread.join()


@dataclass(frozen=True)
class Hit:
    """One failpoint that acted: where, when, and on whose message."""

    stage: Stage
    point: str
    at: float
    pid: int
    source: str
    unit: int | None


class Failpoints:
    """Failpoints of one run, each with its marker."""

    def __init__(self, directory: Path, action: str, stages: Sequence[Stage], points: Sequence[str] = POINTS) -> None:
        self._directory = directory
        self._action = action
        self.places = [(stage, point) for stage in stages for point in points]

    @property
    def setting(self) -> str:
        return ";".join(f"{stage}:{point}:{self._action}:{self.marker(stage, point)}" for stage, point in self.places)

    def marker(self, stage: Stage, point: str) -> Path:
        return self._directory / f"hit-{stage}-{point}"

    def disarm(self) -> None:
        """None acts before it is armed."""
        for stage, point in self.places:
            self.marker(stage, point).touch()

    def arm(self, stage: Stage, point: str) -> None:
        self.marker(stage, point).unlink()

    def hits(self) -> list[Hit]:
        """Every time a failpoint acted, in order."""
        found = []
        for stage, point in self.places:
            marker = self.marker(stage, point)
            for line in marker.read_text().splitlines() if marker.exists() else ():
                told = json.loads(line)
                message = told["message"]
                found.append(Hit(stage, point, told["at"], told["pid"], message["source"], message.get("unit")))
        return sorted(found, key=lambda hit: hit.at)


def recovery_s(deployment: Deployment, ledger: Ledger, hit: Hit) -> float | None:
    """Seconds from a kill until the work it interrupted was in hand again; None when nothing was interrupted.

    Before the commit that is the next claim of the same row, after it the first claim of what it let go on: the
    units of a stage that was divided, or the next stage.
    """
    if hit.point in BEFORE_COMMIT:
        again = ledger.second_claim(hit.source, hit.stage, hit.unit, hit.at)
        return None if again is None else again - hit.at
    units = _times(deployment, hit, "ingest_units", hit.stage)
    if units and hit.unit is None:
        return max(0.0, min(started for started, _ in units) - hit.at)
    following = flow.successor(hit.stage)
    if following is None or any(finished > hit.at for _, finished in units):
        return None
    ((started, _),) = _times(deployment, hit, "ingest_stages", following)
    return max(0.0, started - hit.at)


def _times(deployment: Deployment, hit: Hit, table: str, stage: Stage) -> list[tuple[float, float]]:
    """When the rows of a stage were first claimed and when they were finished."""
    rows = deployment.sql(
        "SELECT extract(epoch FROM started_at)::float8, extract(epoch FROM finished_at)::float8"
        f" FROM {table} WHERE source_id = :s AND generation = 1 AND stage = :stage",
        s=hit.source,
        stage=stage,
    )
    return [(float(str(started)), float(str(finished))) for started, finished in rows]


def attempts_beyond_kills(
    deployment: Deployment, tenant_id: uuid.UUID, hits: Sequence[Hit]
) -> list[tuple[object, ...]]:
    """Rows of the ledger that were tried more often than once and once more for each kill of them."""
    rows = deployment.sql(
        "SELECT source_id::text, stage, NULL::int AS unit, attempts FROM ingest_stages WHERE tenant_id = :t"
        " UNION ALL SELECT source_id::text, stage, unit, attempts FROM ingest_units WHERE tenant_id = :t",
        t=tenant_id,
    )
    kills = [(hit.source, str(hit.stage), hit.unit) for hit in hits]
    return [row for row in rows if int(str(row[3])) > kills.count((str(row[0]), str(row[1]), row[2])) + 1]  # type: ignore[arg-type]


def assert_all_published(deployment: Deployment, principal: Principal, sources: Sequence[Source]) -> None:
    """Every document is ready, none crashed, no chunk twice, nothing left to do."""
    assert {source.title: (source.status, source.latest.failure) for source in sources} == {
        source.title: ("ready", None) for source in sources
    }
    deployment.check_guarantees(principal.tenant_id)
    assert (
        deployment.sql(
            "SELECT source_id, stage, status FROM ingest_stages WHERE tenant_id = :t AND status <> 'succeeded'",
            t=principal.tenant_id,
        )
        == []
    )
