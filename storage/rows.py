"""Helpers the repositories share: typed rows, vectors of values, cursors."""

from __future__ import annotations

import base64
import binascii
import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.engine import RowMapping

from pipeline.errors import Invalid
from pipeline.types import GenerationRef


class Repository:
    """Statements of one tenant over one connection; every statement binds ``:tenant``."""

    def __init__(self, connection: Connection, tenant_id: uuid.UUID) -> None:
        self._connection = connection
        self._tenant = tenant_id

    def rows(self, statement: str, **values: Any) -> Sequence[RowMapping]:
        return self._connection.execute(text(statement), {"tenant": self._tenant, **values}).mappings().all()

    def row(self, statement: str, **values: Any) -> RowMapping | None:
        return self._connection.execute(text(statement), {"tenant": self._tenant, **values}).mappings().first()

    def one(self, statement: str, **values: Any) -> RowMapping:
        """The single row of a statement that always has one. A LookupError otherwise is a bug."""
        row = self.row(statement, **values)
        if row is None:
            raise LookupError("a row that this transaction holds is missing")
        return row

    def change(self, statement: str, **values: Any) -> int:
        """Execute; return how many rows it changed."""
        return self._connection.execute(text(statement), {"tenant": self._tenant, **values}).rowcount

    def change_many(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        if rows:
            self._connection.execute(text(statement), [{"tenant": self._tenant, **row} for row in rows])


def of(ref: GenerationRef) -> dict[str, Any]:
    """The bind values of a generation's key."""
    return {"source": ref.source_id, "generation": ref.generation}


def encode_cursor(created_at: datetime, identity: uuid.UUID) -> str:
    packed = json.dumps([created_at.isoformat(), str(identity)]).encode()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def decode_cursor(cursor: str | None) -> tuple[datetime, uuid.UUID] | None:
    """The place a page ended at. Raises :class:`Invalid` for anything that is not a cursor of ours."""
    if cursor is None:
        return None
    try:
        created_at, identity = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        return datetime.fromisoformat(created_at), uuid.UUID(identity)
    except (ValueError, TypeError, AttributeError, binascii.Error) as problem:
        raise Invalid("cursor is not one this list gave out") from problem
