"""Memberships in memory."""

from __future__ import annotations

import uuid

from pipeline.types import Principal


class MemoryPolicy:
    """Adapter of :class:`pipeline.ports.AuthorizationPolicy`; ``memberships`` may be changed at any time."""

    def __init__(self) -> None:
        self.memberships: set[tuple[uuid.UUID, str, str]] = set()

    def join(self, tenant_id: uuid.UUID, subject: str, member: str) -> None:
        self.memberships.add((tenant_id, subject, member))

    def leave(self, tenant_id: uuid.UUID, subject: str, member: str) -> None:
        self.memberships.discard((tenant_id, subject, member))

    def effective_subjects(self, principal: Principal) -> tuple[str, ...]:
        if not _is_storable(principal.user):
            return ()
        held = {principal.own_subject} | {
            subject
            for tenant_id, subject, member in self.memberships
            if (tenant_id, member) == (principal.tenant_id, principal.user)
        }
        return tuple(sorted(held if principal.narrowed_to is None else held.intersection(principal.narrowed_to)))


def _is_storable(name: str) -> bool:
    """Whether Postgres could hold it: a NUL and half of a surrogate pair are in no row."""
    return not any(letter == "\x00" or "\ud800" <= letter <= "\udfff" for letter in name)
