-- Docmill: what only a superuser can create. Run once, and again after an upgrade; every statement may be repeated.
--
--     psql --no-psqlrc -v ON_ERROR_STOP=1 -h HOST -U postgres -d postgres -f deploy/sql/bootstrap.sql
--
-- Then give each role that logs in a password from your secret store (never write one into this file):
--
--     ALTER ROLE docmill_gateway PASSWORD '…';      and _worker, _sweep, _migrator, _backup
--
-- and create the tables with `docmill migrate`, which logs in as docmill_migrator.
--
-- Two psql commands are used, \gexec and \connect, each alone on its line; the embedded stack
-- (pipeline/entrypoints/embedded/bootstrap.py) runs the same file without psql and knows these two and no other.

-- Roles -----------------------------------------------------------------------------------------------------------

DO $$
DECLARE
    wanted text;
BEGIN
    FOREACH wanted IN ARRAY ARRAY[
        'docmill_owner', 'docmill_migrator', 'docmill_gateway', 'docmill_worker', 'docmill_sweep', 'docmill_backup'
    ] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = wanted) THEN
            EXECUTE format('CREATE ROLE %I', wanted);
        END IF;
    END LOOP;
END
$$;

-- Owns every object and never logs in, so that no connection is exempt from a policy by ownership.
ALTER ROLE docmill_owner NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
-- Logs in for `docmill migrate` alone and acts as the owner from its first statement on.
ALTER ROLE docmill_migrator LOGIN NOINHERIT NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
GRANT docmill_owner TO docmill_migrator;
ALTER ROLE docmill_migrator SET role TO docmill_owner;
-- The application: what they may touch is granted table by table in the migrations.
ALTER ROLE docmill_gateway LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE docmill_worker LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
ALTER ROLE docmill_sweep LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS;
-- pg_dump: under FORCE ROW LEVEL SECURITY the owner's own dump fails, so the dump reads past the policies and writes nothing.
ALTER ROLE docmill_backup LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION BYPASSRLS;
ALTER ROLE docmill_backup SET default_transaction_read_only TO on;

-- Timeouts. A request is short, a stage's transaction never spans OCR, embedding or S3, an index build may take an hour.
ALTER ROLE docmill_gateway SET statement_timeout TO '15s';
ALTER ROLE docmill_gateway SET lock_timeout TO '3s';
ALTER ROLE docmill_gateway SET idle_in_transaction_session_timeout TO '15s';
ALTER ROLE docmill_worker SET statement_timeout TO '120s';
ALTER ROLE docmill_worker SET lock_timeout TO '10s';
ALTER ROLE docmill_worker SET idle_in_transaction_session_timeout TO '60s';
ALTER ROLE docmill_sweep SET statement_timeout TO '60s';
ALTER ROLE docmill_sweep SET lock_timeout TO '3s';
ALTER ROLE docmill_sweep SET idle_in_transaction_session_timeout TO '30s';
ALTER ROLE docmill_migrator SET statement_timeout TO '1h';
ALTER ROLE docmill_migrator SET lock_timeout TO '3s';
ALTER ROLE docmill_migrator SET idle_in_transaction_session_timeout TO '5min';
ALTER ROLE docmill_backup SET statement_timeout TO 0;
ALTER ROLE docmill_backup SET lock_timeout TO '30s';
ALTER ROLE docmill_backup SET idle_in_transaction_session_timeout TO '5min';

-- The database: CREATE DATABASE runs in no transaction and no DO block, hence \gexec. -------------------------------

SELECT 'CREATE DATABASE docmill OWNER docmill_owner ENCODING ''UTF8'' TEMPLATE template0'
WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'docmill')
\gexec

REVOKE ALL ON DATABASE docmill FROM PUBLIC;
GRANT CONNECT ON DATABASE docmill TO docmill_migrator, docmill_gateway, docmill_worker, docmill_sweep, docmill_backup;

\connect docmill

-- Inside the database ---------------------------------------------------------------------------------------------

-- A migrator may not create it: vector is not a trusted extension.
CREATE EXTENSION IF NOT EXISTS vector;

CREATE SCHEMA IF NOT EXISTS app AUTHORIZATION docmill_owner;
ALTER SCHEMA app OWNER TO docmill_owner;
REVOKE ALL ON SCHEMA app FROM PUBLIC;
REVOKE ALL ON SCHEMA public FROM PUBLIC;
GRANT USAGE, CREATE ON SCHEMA public TO docmill_owner;
GRANT USAGE ON SCHEMA public, app TO docmill_gateway, docmill_worker, docmill_sweep, docmill_backup;

-- The owner's future functions are nobody's until a migration grants them; its tables are readable by the backup.
ALTER DEFAULT PRIVILEGES FOR ROLE docmill_owner REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC;
ALTER DEFAULT PRIVILEGES FOR ROLE docmill_owner GRANT SELECT ON TABLES TO docmill_backup;
ALTER DEFAULT PRIVILEGES FOR ROLE docmill_owner GRANT SELECT ON SEQUENCES TO docmill_backup;
