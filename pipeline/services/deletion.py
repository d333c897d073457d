"""Deletion: hidden at once, rows and objects afterwards, a receipt of what was found and left."""

from __future__ import annotations

import uuid

from pipeline.ports import AuthorizationPolicy, FileContentStore, TaskQueue
from pipeline.types import Principal
from pipeline.unit_of_work import Receipt, UnitOfWorkFactory


class DeletionService:
    """Carries deletions out; runs in the workers."""

    def __init__(self, units: UnitOfWorkFactory, content: FileContentStore) -> None:
        self._units = units
        self._content = content

    def carry_out(self, tenant_id: uuid.UUID, receipt_id: uuid.UUID) -> None:
        """Rows, then objects, then the receipt; repeating it is harmless. Raises TransientError."""
        with self._units(tenant_id) as uow:
            work = uow.deletions.open_receipt(receipt_id)
            if work is None:
                return
            uow.deletions.purge(receipt_id)
            uow.commit()
        for key in work.content_keys:
            self._content.delete(key)
        with self._units(tenant_id) as uow:
            uow.deletions.close(receipt_id)
            uow.commit()


class DeletionRequests:
    """Takes deletions in; runs in the gateway."""

    def __init__(self, units: UnitOfWorkFactory, policy: AuthorizationPolicy, queue: TaskQueue) -> None:
        self._units = units
        self._policy = policy
        self._queue = queue

    def delete_source(self, principal: Principal, source_id: uuid.UUID, *, with_file: bool) -> uuid.UUID:
        """Hide the source (and its file) now; the receipt's id. Raises NotFound."""
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            receipt_id = uow.deletions.remove_source(source_id, subjects, with_file=with_file)
            uow.commit()
        self._queue.ring_deletion(principal.tenant_id, receipt_id)
        return receipt_id

    def delete_file(self, principal: Principal, file_id: uuid.UUID) -> uuid.UUID:
        """Hide the file and every source no other file is linked to; the receipt's id. Raises NotFound."""
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            receipt_id = uow.deletions.remove_file(file_id, subjects)
            uow.commit()
        self._queue.ring_deletion(principal.tenant_id, receipt_id)
        return receipt_id

    def receipt(self, principal: Principal, receipt_id: uuid.UUID) -> Receipt:
        """Raises NotFound."""
        subjects = self._policy.effective_subjects(principal)
        with self._units(principal.tenant_id) as uow:
            return uow.deletions.receipt(receipt_id, subjects)
