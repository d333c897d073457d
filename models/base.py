"""The declarative base, naming conventions and the columns every table shares."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Annotated

from sqlalchemy import DateTime, MetaData, Text, Uuid, text
from sqlalchemy.orm import DeclarativeBase, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMING)


TenantKey = Annotated[uuid.UUID, mapped_column(Uuid, primary_key=True)]
Key = Annotated[uuid.UUID, mapped_column(Uuid, primary_key=True)]
Ordinal = Annotated[int, mapped_column(primary_key=True, autoincrement=False)]
Words = Annotated[str, mapped_column(Text)]
Moment = Annotated[datetime, mapped_column(DateTime(timezone=True))]
CreatedAt = Annotated[
    datetime, mapped_column(DateTime(timezone=True), server_default=text("clock_timestamp()"), nullable=False)
]
