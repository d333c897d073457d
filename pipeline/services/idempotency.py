"""Requests that carry an ``Idempotency-Key`` are carried out once and answered the same for a day."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from pipeline.errors import Conflict, Invalid, TransientError
from pipeline.types import Json, Principal
from pipeline.unit_of_work import Remembered, RequestKey, Reservation, UnitOfWorkFactory

log = structlog.get_logger()

# Answers of a tenant older than a day are forgotten at most this often by one process.
_FORGET_INTERVAL_S = 3600.0
_OK = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered: an HTTP status and a JSON body."""

    status: int
    body: dict[str, Json]


class IdempotencyService:
    """``forget_interval_s`` is how often a tenant's expired keys are looked for."""

    def __init__(self, units: UnitOfWorkFactory, forget_interval_s: float = _FORGET_INTERVAL_S) -> None:
        self._units = units
        self._forget_interval_s = forget_interval_s
        self._forgotten_at: dict[uuid.UUID, float] = {}

    def once(
        self, principal: Principal, route: str, key: str | None, fingerprint: str, work: Callable[[], Answer]
    ) -> Answer:
        """The answer of ``work``, or the one remembered for the same key and body.

        Only answers of success are remembered: whatever ``work`` raises leaves the key free for another try. Raises
        :class:`Invalid` when the key was used with another body, :class:`Conflict` while another request with it is
        under way.
        """
        if key is None:
            return work()
        request = RequestKey(principal.user, route, key)
        reserved = self._reserve(principal.tenant_id, request, fingerprint)
        if isinstance(reserved, Answer):
            return reserved
        answer = None
        try:
            answer = work()
        finally:
            self._settle(principal.tenant_id, request, reserved, answer)
        return answer

    def check(self, principal: Principal, route: str, key: str | None, fingerprint: str) -> None:
        """For a request that changes nothing and is answered anew: raises :class:`Invalid` for another body only."""
        if key is None:
            return
        request = RequestKey(principal.user, route, key)
        with self._units(principal.tenant_id) as uow:
            found = uow.requests.reserve(request, fingerprint)
            if isinstance(found, Reservation):
                uow.requests.remember(request, found, _OK, {})
            uow.commit()
        if isinstance(found, Remembered) and found.fingerprint != fingerprint:
            raise _another_body()

    def _reserve(self, tenant_id: uuid.UUID, request: RequestKey, fingerprint: str) -> Reservation | Answer:
        with self._units(tenant_id) as uow:
            if self._is_time_to_forget(tenant_id):
                uow.requests.forget_expired()
            found = uow.requests.reserve(request, fingerprint)
            uow.commit()
        if isinstance(found, Reservation):
            return found
        if found.fingerprint != fingerprint:
            raise _another_body()
        if found.status is None or found.body is None:
            raise Conflict("a request with this Idempotency-Key is under way; ask again in a moment")
        return Answer(found.status, found.body)

    def _settle(
        self, tenant_id: uuid.UUID, request: RequestKey, reservation: Reservation, answer: Answer | None
    ) -> None:
        """Remember the answer, or free the key. What was done stays done when the note of it cannot be written."""
        try:
            with self._units(tenant_id) as uow:
                if answer is None:
                    uow.requests.release(request, reservation)
                else:
                    uow.requests.remember(request, reservation, answer.status, answer.body)
                uow.commit()
        except TransientError as trouble:
            log.warning("idempotency.not_settled", route=request.route, dependency=trouble.dependency)

    def _is_time_to_forget(self, tenant_id: uuid.UUID) -> bool:
        now = time.monotonic()
        last = self._forgotten_at.get(tenant_id)
        if last is not None and now - last < self._forget_interval_s:
            return False
        self._forgotten_at[tenant_id] = now
        return True


def _another_body() -> Invalid:
    return Invalid("this Idempotency-Key was used with another request body")
