"""Remembered requests in Postgres."""

from __future__ import annotations

import json

from pipeline.types import Json
from pipeline.unit_of_work import Remembered, RequestKey, Reservation
from storage.rows import Repository

_KEY = "tenant_id = :tenant AND principal = :principal AND route = :route AND key = :key"
_KEPT = "interval '24 hours'"
# A request under way for longer than any request may take died with its process; its key is free again.
_ABANDONED = "interval '5 minutes'"


class PostgresRequests(Repository):
    """Adapter of :class:`pipeline.unit_of_work.RequestStore`."""

    def reserve(self, request: RequestKey, fingerprint: str) -> Reservation | Remembered:
        # One statement: of two requests at once, the second waits for the first one's row and then sees it.
        taken = self.row(
            "INSERT INTO idempotency_keys AS k (tenant_id, principal, route, key, body_hash)"
            " VALUES (:tenant, :principal, :route, :key, :hash)"
            " ON CONFLICT (tenant_id, principal, route, key) DO UPDATE SET body_hash = excluded.body_hash,"
            "    status = NULL, response = NULL, created_at = clock_timestamp()"
            f" WHERE k.created_at < clock_timestamp() - {_KEPT}"
            f"    OR k.status IS NULL AND k.created_at < clock_timestamp() - {_ABANDONED}"
            " RETURNING created_at",
            **_of(request),
            hash=fingerprint,
        )
        if taken is not None:
            return Reservation(taken["created_at"])
        found = self.row(f"SELECT body_hash, status, response FROM idempotency_keys WHERE {_KEY}", **_of(request))
        if found is None:
            # Freed between the two statements: as good as still under way, the caller asks again.
            return Remembered(fingerprint, None, None)
        return Remembered(found["body_hash"], found["status"], found["response"])

    def remember(self, request: RequestKey, reservation: Reservation, status: int, body: dict[str, Json]) -> None:
        self.change(
            "UPDATE idempotency_keys SET status = :status, response = CAST(:body AS jsonb)"
            f" WHERE {_KEY} AND created_at = :since AND status IS NULL",
            **_of(request),
            since=reservation.since,
            status=status,
            body=json.dumps(body),
        )

    def release(self, request: RequestKey, reservation: Reservation) -> None:
        self.change(
            f"DELETE FROM idempotency_keys WHERE {_KEY} AND created_at = :since AND status IS NULL",
            **_of(request),
            since=reservation.since,
        )

    def forget_expired(self) -> int:
        return self.change(
            f"DELETE FROM idempotency_keys WHERE tenant_id = :tenant AND created_at < clock_timestamp() - {_KEPT}"
        )


def _of(request: RequestKey) -> dict[str, str]:
    return {"principal": request.user, "route": request.route, "key": request.key}
