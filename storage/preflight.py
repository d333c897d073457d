"""What must hold before a service serves: its role is harmless, every tenant table is protected, the schema fits."""

from __future__ import annotations

from sqlalchemy import Engine, text

from pipeline.errors import ConfigurationError
from storage.engine import translated

SCHEMA_VERSIONS = frozenset({"0001"})

# Partitions are covered by their own policies; views would need security_invoker and there are none.
UNPROTECTED_TABLES = """
SELECT c.relname FROM pg_class c
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
   AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped)
   AND NOT (c.relrowsecurity AND c.relforcerowsecurity
            AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid AND p.polwithcheck IS NOT NULL))
 ORDER BY 1
"""

_ROLE = """
SELECT r.rolname, r.rolsuper, r.rolbypassrls,
       EXISTS (SELECT FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relowner = r.oid) AS owns
  FROM pg_roles r WHERE r.rolname = current_user
"""


def preflight(engine: Engine) -> None:
    """Raises ConfigurationError with the one thing to mend, and TransientError when Postgres cannot be asked."""
    with translated(), engine.begin() as connection:
        role = connection.execute(text(_ROLE)).mappings().one()
        if role["rolsuper"] or role["rolbypassrls"] or role["owns"]:
            raise ConfigurationError(
                f"database role {role['rolname']} could see every tenant (superuser, owner or BYPASSRLS);"
                " use the roles of deploy/sql/bootstrap.sql"
            )
        if connection.execute(text("SELECT to_regclass('public.alembic_version')")).scalar_one() is None:
            raise ConfigurationError("the database has no schema yet; run docmill migrate")
        version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
        if version not in SCHEMA_VERSIONS:
            raise ConfigurationError(
                f"the database schema is {version}; this version needs {max(SCHEMA_VERSIONS)}: run docmill migrate"
            )
        unprotected = connection.execute(text(UNPROTECTED_TABLES)).scalars().all()
        if unprotected:
            raise ConfigurationError(f"table {unprotected[0]} lacks a forced row-level policy; run docmill migrate")


def preflight_tenants(engine: Engine) -> None:
    """A tenant's role must see no row before a tenant is set. Raises ConfigurationError."""
    with translated(), engine.begin() as connection:
        if connection.execute(text("SELECT count(*) FROM sources")).scalar_one() != 0:
            raise ConfigurationError("the database shows rows without a tenant; its row policies are not in force")
