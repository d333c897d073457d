"""Who holds which subject, read from the memberships at the moment of use."""

from __future__ import annotations

from sqlalchemy import Engine

from pipeline.types import Principal
from storage.engine import tenant_transaction
from storage.rows import Repository
from storage.search_filters import is_storable


class PostgresPolicy:
    """Adapter of :class:`pipeline.ports.AuthorizationPolicy`: nothing is remembered, a revocation counts at once."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def effective_subjects(self, principal: Principal) -> tuple[str, ...]:
        if not is_storable(principal.user):
            return ()
        with tenant_transaction(self._engine, principal.tenant_id) as connection:
            rows = Repository(connection, principal.tenant_id).rows(
                "SELECT subject FROM memberships WHERE tenant_id = :tenant AND member = :member", member=principal.user
            )
        held = {principal.own_subject, *(row["subject"] for row in rows)}
        return tuple(sorted(held if principal.narrowed_to is None else held.intersection(principal.narrowed_to)))
