"""``docmill token``: signed tokens for development, for the embedded stack or for a deployment's settings."""

from __future__ import annotations

import argparse
import os
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import jwt
from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from pipeline.entrypoints.cli import terminal
from pipeline.entrypoints.cli.outcome import CommandError, Exit
from pipeline.entrypoints.embedded.layout import Layout, default_data_directory
from pipeline.entrypoints.embedded.services import EmbeddedServices
from storage.engine import build_engine
from storage.identity import create_tenant
from storage.unit_of_work import PostgresUnits

_ALGORITHM = "HS256"
_MIGRATOR = "DOCMILL_DATABASE_URL_MIGRATOR"
_SECRET = "DOCMILL_JWT_SECRET"  # noqa: S105 (a variable's name)
_SLUG = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
# Nothing of the ledger is touched, so no lease is ever taken.
_LEASE_S = 20.0
_MOST_NAME_CHARS = 200


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a token says, and the memberships that are written with it."""

    tenant: str = "dev"
    user: str = "dev"
    subjects: Sequence[str] = ()
    scopes: Sequence[str] = ()
    ttl_s: int = 30 * 24 * 3600


def run(given: argparse.Namespace) -> int:
    wanted = Wanted(given.tenant, given.user, given.subject, given.scope, given.ttl)
    terminal.say(issue(_environment(given.data), wanted))
    return Exit.DONE


def issue(environment: Mapping[str, str], wanted: Wanted) -> str:
    """A signed token; its tenant is made on first use. Raises CommandError, and TransientError('postgres')."""
    if _SLUG.fullmatch(wanted.tenant) is None:
        raise CommandError("a tenant's name has small letters, digits and hyphens, 63 at most", Exit.USAGE)
    for name in (wanted.user, *wanted.subjects, *wanted.scopes):
        if not name or not name.isprintable() or len(name) > _MOST_NAME_CHARS:
            raise CommandError("users, subjects and scopes are names of 1 to 200 printable characters", Exit.USAGE)
    migrator = build_engine(environment[_MIGRATOR], pool_size=1, application="docmill-token")
    try:
        tenant_id = _prepare(migrator, wanted)
    except SQLAlchemyError as problem:
        raise CommandError(
            f"the tenant could not be made ({type(problem).__name__}); run docmill migrate first"
        ) from problem
    finally:
        migrator.dispose()
    now = int(time.time())
    claims: dict[str, object] = {"tenant": str(tenant_id), "sub": wanted.user, "iat": now, "exp": now + wanted.ttl_s}
    if wanted.scopes:
        claims["scope"] = " ".join(wanted.scopes)
    return jwt.encode(claims, environment[_SECRET], algorithm=_ALGORITHM)


def _prepare(migrator: Engine, wanted: Wanted) -> uuid.UUID:
    tenant_id = create_tenant(migrator, wanted.tenant)
    with PostgresUnits(migrator, _LEASE_S)(tenant_id) as uow:
        uow.subjects.ensure_own(wanted.user)
        for subject in wanted.subjects:
            uow.subjects.add_member(subject, wanted.user)
        uow.commit()
    return tenant_id


def _environment(data: Path | None) -> Mapping[str, str]:
    """A deployment's own settings when they are set, else those of the embedded stack."""
    if data is None and os.environ.get(_MIGRATOR) and os.environ.get(_SECRET):
        return os.environ
    place = Layout((data or default_data_directory()).absolute())
    if not place.ports.exists():
        raise CommandError(
            f"no stack has its data in {place.root}; start one with: docmill up (or set {_MIGRATOR} and {_SECRET})",
            Exit.NOT_REACHABLE,
        )
    return EmbeddedServices(place.root, running=True).settings_environment()
