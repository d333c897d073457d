"""The first schema: tables, tenant isolation, roles' rights."""

from __future__ import annotations

from importlib.resources import files

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    here = files("models.migrations.versions")
    for script in ("0001_tables.sql", "0001_security.sql"):
        op.execute(here.joinpath(script).read_text(encoding="utf-8").replace(":", "\\:"))


def downgrade() -> None:
    raise RuntimeError("the first schema has nothing before it; restore a backup instead")
