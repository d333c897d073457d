"""The ledger in Postgres: claims, leases, fencing tokens, units and fan-in. All times are the database's."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from pipeline import flow, ledger
from pipeline.errors import LeaseLost, SourceGone
from pipeline.flow import Stage
from pipeline.ports import Doorbell
from pipeline.types import GenerationRef, Priority
from storage.rows import Repository, of

_STAGE_KEY = "tenant_id = :tenant AND source_id = :source AND generation = :generation AND stage = :stage"
_UNIT_KEY = _STAGE_KEY + " AND unit = :unit"

# A document that lost this many workers in company runs alone; only losses while alone count from there.
LOSSES_BEFORE_ALONE = 2
# Back-off of transient failures: doubles from the first to the last, in seconds.
FIRST_BACKOFF_S = 2.0
LONGEST_BACKOFF_S = 300.0

_CONTEXT = """
SELECT s.status AS source_status, s.desired_generation, g.status AS generation_status,
       p.status AS predecessor_status, st.status AS stage_status
  FROM sources s
  JOIN generations g ON g.tenant_id = s.tenant_id AND g.source_id = s.source_id AND g.generation = :generation
  JOIN ingest_stages st ON st.tenant_id = s.tenant_id AND st.source_id = s.source_id
       AND st.generation = g.generation AND st.stage = :stage
  LEFT JOIN ingest_stages p ON p.tenant_id = s.tenant_id AND p.source_id = s.source_id
       AND p.generation = g.generation AND p.stage = :predecessor
 WHERE s.tenant_id = :tenant AND s.source_id = :source
"""

_TAKE = """
UPDATE {table}
   SET status = 'running', token = gen_random_uuid(), attempts = attempts + 1, waiting_for = NULL,
       lost_alone = lost_alone + CASE WHEN status = 'running' AND lost_leases >= {alone} THEN 1 ELSE 0 END,
       lost_leases = lost_leases + CASE WHEN status = 'running' THEN 1 ELSE 0 END,
       heartbeat_at = clock_timestamp(), lease_until = clock_timestamp() + make_interval(secs => :lease),
       started_at = coalesce(started_at, clock_timestamp())
 WHERE {key} AND (status = 'queued' AND available_at <= clock_timestamp()
                  OR status = 'running' AND lease_until < clock_timestamp())
   AND (:alone OR lost_leases + CASE WHEN status = 'running' THEN 1 ELSE 0 END < {alone})
RETURNING token, attempts, lost_leases, lost_alone, sandbox_deaths
"""


def _table(unit: int | None) -> tuple[str, str]:
    return ("ingest_stages", _STAGE_KEY) if unit is None else ("ingest_units", _UNIT_KEY)


def _key(ref: GenerationRef, stage: Stage, unit: int | None) -> dict[str, Any]:
    return {**of(ref), "stage": stage, **({} if unit is None else {"unit": unit})}


class PostgresLedger(Repository):
    """Adapter of :class:`pipeline.unit_of_work.Ledger`. ``lease_s`` is how long a silent worker is believed."""

    def __init__(self, connection: Connection, tenant_id: uuid.UUID, lease_s: float) -> None:
        super().__init__(connection, tenant_id)
        self._lease_s = lease_s

    def claim(self, ref: GenerationRef, stage: Stage, unit: int | None, *, alone: bool) -> ledger.Claim:
        context = self.row(_CONTEXT, **of(ref), stage=stage, predecessor=flow.predecessor(stage))
        if context is None:
            return ledger.Refused("unknown")
        if context["source_status"] == "removed" or context["generation_status"] != "ingesting":
            # A published generation's last stage may be asked for again: its chain has simply ended.
            return ledger.Refused(f"source {context['source_status']}, generation {context['generation_status']}")
        if context["desired_generation"] != ref.generation:
            return ledger.Refused("superseded")
        if flow.predecessor(stage) is not None and context["predecessor_status"] != "succeeded":
            return ledger.Refused("predecessor has not succeeded")
        if context["stage_status"] == "succeeded":
            return ledger.AlreadyDone()
        if context["stage_status"] == "failed":
            return ledger.Refused("failed")
        if (unit is None) == (context["stage_status"] == "fanned"):
            return ledger.HeldByAnother()
        return self._take(ref, stage, unit, alone=alone)

    def _take(self, ref: GenerationRef, stage: Stage, unit: int | None, *, alone: bool) -> ledger.Claim:
        table, key = _table(unit)
        values = _key(ref, stage, unit)
        row = self.row(
            _TAKE.format(table=table, key=key, alone=LOSSES_BEFORE_ALONE), **values, lease=self._lease_s, alone=alone
        )
        if row is not None:
            return ledger.Won(**row)
        held = self.row(
            f"SELECT status, lost_leases, available_at <= clock_timestamp() AS due FROM {table} WHERE {key}", **values
        )
        if held is None:
            return ledger.Refused("unknown")
        if held["status"] == "succeeded":
            return ledger.AlreadyDone()
        if held["status"] == "queued" and held["due"] and held["lost_leases"] >= LOSSES_BEFORE_ALONE and not alone:
            return ledger.MustRunAlone()
        return ledger.HeldByAnother()

    def beat(self, ref: GenerationRef, stage: Stage, unit: int | None, token: uuid.UUID) -> bool:
        table, key = _table(unit)
        return (
            self.change(
                f"UPDATE {table} SET heartbeat_at = clock_timestamp(),"
                f" lease_until = clock_timestamp() + make_interval(secs => :lease) WHERE {key} AND token = :token",
                **_key(ref, stage, unit),
                token=token,
                lease=self._lease_s,
            )
            == 1
        )

    def progress(self, ref: GenerationRef, stage: Stage, done: int, total: int) -> None:
        self.change(
            f"UPDATE ingest_stages SET progress_done = greatest(progress_done, :done), progress_total = :total"
            f" WHERE {_STAGE_KEY}",
            **_key(ref, stage, None),
            done=done,
            total=total,
        )

    def fan_out(self, ref: GenerationRef, stage: Stage, token: uuid.UUID, units: Sequence[ledger.UnitPlan]) -> None:
        total = sum(unit.size for unit in units)
        given_up = self.change(
            "UPDATE ingest_stages SET status = 'fanned', token = NULL, lease_until = NULL, units_total = :count,"
            f" units_done = 0, progress_done = 0, progress_total = :total WHERE {_STAGE_KEY} AND token = :token",
            **_key(ref, stage, None),
            token=token,
            count=len(units),
            total=total,
        )
        if given_up != 1:
            raise LeaseLost(f"{stage} was taken over")
        self.change_many(
            "INSERT INTO ingest_units (tenant_id, source_id, generation, stage, unit, first_item, last_item, items,"
            " status, rung_at) VALUES (:tenant, :source, :generation, :stage, :unit, :first, :last, :items, 'queued',"
            " clock_timestamp())",
            [
                {
                    **_key(ref, stage, unit.unit),
                    "first": unit.first,
                    "last": unit.last,
                    "items": None if unit.items is None else list(unit.items),
                }
                for unit in units
            ],
        )

    def units(self, ref: GenerationRef, stage: Stage) -> tuple[ledger.UnitPlan, ...]:
        rows = self.rows(
            f"SELECT unit, first_item, last_item, items FROM ingest_units WHERE {_STAGE_KEY} ORDER BY unit",
            **_key(ref, stage, None),
        )
        return tuple(
            ledger.UnitPlan(
                row["unit"], row["first_item"], row["last_item"], None if row["items"] is None else tuple(row["items"])
            )
            for row in rows
        )

    def unit(self, ref: GenerationRef, stage: Stage, unit: int) -> ledger.UnitPlan:
        for plan in self.units(ref, stage):
            if plan.unit == unit:
                return plan
        raise SourceGone(f"{stage} has no unit {unit}")

    def finish_unit(self, ref: GenerationRef, stage: Stage, unit: int, token: uuid.UUID, output: str | None) -> bool:
        done = self.row(
            "UPDATE ingest_units SET status = 'succeeded', token = NULL, lease_until = NULL, output = :output,"
            f" finished_at = clock_timestamp() WHERE {_UNIT_KEY} AND token = :token"
            " RETURNING coalesce(cardinality(items), last_item - first_item + 1) AS size",
            **_key(ref, stage, unit),
            token=token,
            output=output,
        )
        if done is None:
            raise LeaseLost(f"unit {unit} of {stage} was taken over")
        # Nobody counts rows: the stage's own row is the counter, and its lock decides who was last.
        stage_row = self.row(
            "UPDATE ingest_stages SET units_done = units_done + 1, progress_done = progress_done + :size"
            f" WHERE {_STAGE_KEY} AND status = 'fanned' RETURNING units_done = units_total AS last",
            **_key(ref, stage, None),
            size=done["size"],
        )
        if stage_row is None:
            raise SourceGone(f"{stage} ended while unit {unit} ran")
        return bool(stage_row["last"])

    def outputs(self, ref: GenerationRef, stage: Stage) -> tuple[str, ...]:
        rows = self.rows(
            f"SELECT output FROM ingest_units WHERE {_STAGE_KEY} AND output IS NOT NULL ORDER BY unit",
            **_key(ref, stage, None),
        )
        return tuple(row["output"] for row in rows)

    def finish(self, ref: GenerationRef, stage: Stage, token: uuid.UUID | None) -> Stage | None:
        mine = "status = 'fanned'" if token is None else "token = :token"
        finished = self.change(
            "UPDATE ingest_stages SET status = 'succeeded', token = NULL, lease_until = NULL, waiting_for = NULL,"
            " progress_done = progress_total, finished_at = clock_timestamp()"
            f" WHERE {_STAGE_KEY} AND {mine}",
            **_key(ref, stage, None),
            **({} if token is None else {"token": token}),
        )
        if finished != 1:
            raise LeaseLost(f"{stage} was taken over")
        following = flow.successor(stage)
        if following is not None:
            self.change(
                "INSERT INTO ingest_stages (tenant_id, source_id, generation, stage, status, rung_at)"
                " VALUES (:tenant, :source, :generation, :stage, 'queued', clock_timestamp()) ON CONFLICT DO NOTHING",
                **_key(ref, following, None),
            )
        return following

    def fail(self, ref: GenerationRef, stage: Stage, unit: int | None, token: uuid.UUID) -> None:
        table, key = _table(unit)
        ended = self.change(
            f"UPDATE {table} SET status = 'failed', token = NULL, lease_until = NULL, finished_at = clock_timestamp()"
            f" WHERE {key} AND token = :token",
            **_key(ref, stage, unit),
            token=token,
        )
        if ended != 1:
            raise LeaseLost(f"{stage} was taken over")
        if unit is not None:
            self.change(
                f"UPDATE ingest_stages SET status = 'failed', finished_at = clock_timestamp() WHERE {_STAGE_KEY}",
                **_key(ref, stage, None),
            )

    def defer(
        self,
        ref: GenerationRef,
        stage: Stage,
        unit: int | None,
        token: uuid.UUID,
        dependency: str,
        delay_s: float | None,
    ) -> None:
        table, key = _table(unit)
        self.change(
            f"UPDATE {table} SET status = 'queued', token = NULL, lease_until = NULL, rung_at = NULL,"
            " waiting_for = :dependency, transient_count = transient_count + 1, available_at = clock_timestamp()"
            " + make_interval(secs => greatest(:delay, least(:longest, :first * power(2, least(transient_count, 20)))))"
            f" WHERE {key} AND token = :token",
            **_key(ref, stage, unit),
            token=token,
            dependency=dependency,
            delay=delay_s or 0.0,
            first=FIRST_BACKOFF_S,
            longest=LONGEST_BACKOFF_S,
        )

    def requeue_after_death(self, ref: GenerationRef, stage: Stage, unit: int | None, token: uuid.UUID) -> int:
        table, key = _table(unit)
        row = self.row(
            f"UPDATE {table} SET status = 'queued', token = NULL, lease_until = NULL,"
            " sandbox_deaths = sandbox_deaths + 1,"
            f" rung_at = clock_timestamp(), available_at = clock_timestamp() WHERE {key} AND token = :token"
            " RETURNING sandbox_deaths",
            **_key(ref, stage, unit),
            token=token,
        )
        if row is None:
            raise LeaseLost(f"{stage} was taken over")
        return int(row["sandbox_deaths"])

    def reclaim(self, overdue: ledger.Overdue) -> Doorbell | None:
        ref, stage, unit = overdue.ref, overdue.stage, overdue.unit
        table, key = _table(unit)
        overdue_now = (
            "(status = 'running' AND lease_until < clock_timestamp()"
            " OR status = 'queued' AND available_at <= clock_timestamp())"
        )
        # A row that is locked is being finished, or its holder froze in its transaction: no reason to keep the
        # other documents waiting.
        row = self.row(
            f"WITH free AS (SELECT 1 FROM {table} WHERE {key} AND {overdue_now} FOR UPDATE SKIP LOCKED)"
            f" UPDATE {table} SET status = 'queued', token = NULL, lease_until = NULL,"
            f" lost_alone = lost_alone + CASE WHEN status = 'running' AND lost_leases >= {LOSSES_BEFORE_ALONE}"
            " THEN 1 ELSE 0 END,"
            " lost_leases = lost_leases + CASE WHEN status = 'running' THEN 1 ELSE 0 END,"
            " available_at = least(available_at, clock_timestamp()), rung_at = clock_timestamp()"
            f" WHERE {key} AND {overdue_now} AND EXISTS (SELECT FROM free) RETURNING lost_leases",
            **_key(ref, stage, unit),
        )
        if row is None:
            return None
        return self._bell(ref, stage, unit, alone=row["lost_leases"] >= LOSSES_BEFORE_ALONE)

    def _bell(self, ref: GenerationRef, stage: Stage, unit: int | None, *, alone: bool) -> Doorbell | None:
        generation = self.row(
            "SELECT priority, status FROM generations"
            " WHERE tenant_id = :tenant AND source_id = :source AND generation = :generation",
            **of(ref),
        )
        if generation is None or generation["status"] != "ingesting":
            return None
        size = 1 if unit is None else self.unit(ref, stage, unit).size
        return Doorbell(ref, stage, Priority(generation["priority"]), unit, size, alone)

    def admit(self, candidate: ledger.Candidate) -> Doorbell | None:
        ref = candidate.ref
        admitted = self.change(
            "UPDATE generations SET status = 'ingesting', admitted_at = clock_timestamp() WHERE tenant_id = :tenant"
            " AND source_id = :source AND generation = :generation AND status = 'queued'",
            **of(ref),
        )
        if admitted != 1:
            return None
        self.change(
            "UPDATE sources SET status = 'ingesting' WHERE tenant_id = :tenant AND source_id = :source"
            " AND status = 'pending'",
            source=ref.source_id,
        )
        self.change(
            f"UPDATE ingest_stages SET rung_at = clock_timestamp() WHERE {_STAGE_KEY}",
            **_key(ref, flow.FIRST_STAGE, None),
        )
        return Doorbell(ref, flow.FIRST_STAGE, candidate.priority)
