"""What needs attention in any tenant, found by the sweep role: ids, states and times only."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Engine, text

from pipeline.flow import Stage
from pipeline.ledger import Backlog, Candidate, Overdue
from pipeline.types import GenerationRef, Priority
from storage.engine import translated

# A queued row whose doorbell rang this long ago is rung again: losing or doubling a bell is harmless.
RING_AGAIN_S = 20

_OVERDUE = """
SELECT i.tenant_id, i.source_id, i.generation, i.stage, {unit} AS unit
  FROM {table} i JOIN generations g USING (tenant_id, source_id, generation) JOIN sources s USING (tenant_id, source_id)
 WHERE g.status = 'ingesting' AND s.status <> 'removed'
   AND (i.status = 'running' AND i.lease_until < clock_timestamp()
        OR i.status = 'queued' AND i.available_at <= clock_timestamp()
           AND (i.rung_at IS NULL OR i.rung_at < clock_timestamp() - make_interval(secs => :again)))
"""

# One page of every tenant that waits, so that a bulk import cannot hide the others.
_WAITING_BY_TENANT = """
SELECT tenant_id, source_id, generation, priority FROM (
    SELECT w.tenant_id, w.source_id, w.generation, w.priority, w.created_at,
           row_number() OVER (PARTITION BY w.tenant_id ORDER BY w.priority = 'bulk', w.created_at, w.source_id) AS turn
      FROM generations w JOIN sources s USING (tenant_id, source_id)
     WHERE w.status = 'queued' AND s.status <> 'removed') ranked
 WHERE turn <= :limit ORDER BY priority = 'bulk', created_at, source_id
"""


class PostgresSweepFinder:
    """Adapter of :class:`pipeline.unit_of_work.SweepFinder` on the sweep role's engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def overdue(self, limit: int) -> tuple[Overdue, ...]:
        statement = (
            _OVERDUE.format(table="ingest_stages", unit="NULL::int")
            + " UNION ALL "
            + _OVERDUE.format(table="ingest_units", unit="i.unit")
            + " LIMIT :limit"
        )
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(text(statement), {"limit": limit, "again": RING_AGAIN_S}).all()
        return tuple(
            Overdue(GenerationRef(tenant, source, generation), Stage(stage), unit)
            for tenant, source, generation, stage, unit in rows
        )

    def backlog(self, limit: int) -> Backlog:
        with translated(), self._engine.begin() as connection:
            counts = connection.execute(
                text("SELECT tenant_id, count(*) FROM generations WHERE status = 'ingesting' GROUP BY tenant_id")
            ).all()
            waiting = connection.execute(text(_WAITING_BY_TENANT), {"limit": limit}).all()
        in_flight = {tenant: int(count) for tenant, count in counts}
        return Backlog(
            in_flight=sum(in_flight.values()),
            in_flight_of=in_flight,
            waiting=tuple(
                Candidate(GenerationRef(tenant, source, generation), Priority(priority))
                for tenant, source, generation, priority in waiting
            ),
        )

    def open_deletions(self, limit: int) -> tuple[tuple[uuid.UUID, uuid.UUID], ...]:
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(
                text(
                    "SELECT tenant_id, receipt_id FROM deletion_receipts WHERE completed_at IS NULL"
                    " ORDER BY created_at LIMIT :limit"
                ),
                {"limit": limit},
            ).all()
        return tuple((tenant, receipt) for tenant, receipt in rows)

    def superseded(self, limit: int, retention_s: float) -> tuple[GenerationRef, ...]:
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(
                text(
                    "SELECT tenant_id, source_id, generation FROM generations WHERE status = 'superseded'"
                    " AND finished_at < clock_timestamp() - make_interval(secs => :age)"
                    " ORDER BY finished_at LIMIT :limit"
                ),
                {"limit": limit, "age": retention_s},
            ).all()
        return tuple(GenerationRef(*row) for row in rows)

    @contextmanager
    def exclusive(self, name: str, *, wait: bool = False) -> Iterator[bool]:
        key = {"name": f"docmill:{name}"}
        with translated(), self._engine.begin() as connection:
            if wait:
                connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), key)
                yield True
            else:
                held = text("SELECT pg_try_advisory_xact_lock(hashtextextended(:name, 0))")
                yield bool(connection.execute(held, key).scalar_one())
