"""A doorbell that is only noted down."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from pipeline.ports import Doorbell


class MemoryTaskQueue:
    """Adapter of :class:`pipeline.ports.TaskQueue`: what was rung, in order."""

    def __init__(self) -> None:
        self.bells: list[Doorbell] = []
        self.admissions = 0
        self.deletions: list[tuple[uuid.UUID, uuid.UUID]] = []

    def ring(self, bells: Sequence[Doorbell]) -> None:
        self.bells.extend(bells)

    def ring_admission(self) -> None:
        self.admissions += 1

    def ring_deletion(self, tenant_id: uuid.UUID, receipt_id: uuid.UUID) -> None:
        self.deletions.append((tenant_id, receipt_id))
