"""Which tenants there are."""

from __future__ import annotations

import uuid
from collections.abc import Callable

# Tenants are not taken away while a gateway runs, so one that was found once is not looked for again.
_REMEMBERED = 10_000


class TenantDirectory:
    """``exists`` asks the database. Safe for several threads: at worst a tenant is looked up twice."""

    def __init__(self, exists: Callable[[uuid.UUID], bool]) -> None:
        self._exists = exists
        self._known: set[uuid.UUID] = set()

    def knows(self, tenant_id: uuid.UUID) -> bool:
        """Whether there is such a tenant. Raises ``TransientError('postgres', …)``."""
        if tenant_id in self._known:
            return True
        if not self._exists(tenant_id):
            return False
        if len(self._known) < _REMEMBERED:
            self._known.add(tenant_id)
        return True
