#!/bin/bash
# Runs once in the Postgres container, after bootstrap.sql: gives each role that logs in its password.
set -euo pipefail
psql --no-psqlrc -v ON_ERROR_STOP=1 -U postgres -d postgres \
    -v gateway="$GATEWAY_PASSWORD" -v worker="$WORKER_PASSWORD" -v sweep="$SWEEP_PASSWORD" \
    -v migrator="$MIGRATOR_PASSWORD" -v backup="$BACKUP_PASSWORD" <<'SQL'
ALTER ROLE docmill_gateway PASSWORD :'gateway';
ALTER ROLE docmill_worker PASSWORD :'worker';
ALTER ROLE docmill_sweep PASSWORD :'sweep';
ALTER ROLE docmill_migrator PASSWORD :'migrator';
ALTER ROLE docmill_backup PASSWORD :'backup';
SQL
