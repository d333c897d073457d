-- Who may see what, held by the database. Runs as docmill_owner after the tables.

CREATE SCHEMA IF NOT EXISTS app;

-- The tenant of the current transaction; set_config leaves '' behind, not NULL.
CREATE FUNCTION app.tenant() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT nullif(current_setting('app.tenant_id', true), '')::uuid $$;

-- What must be known before a tenant is: one value back, nothing else.
CREATE FUNCTION app.resolve_tenant(wanted text) RETURNS uuid
    LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
    AS $$ SELECT tenant_id FROM public.tenants WHERE slug = wanted $$;

-- A tenant of this slug, made on first use with the deployment's active set. For the migrator only.
CREATE FUNCTION app.create_tenant(wanted text) RETURNS uuid
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
DECLARE
    found uuid := app.resolve_tenant(wanted);
    fresh uuid := gen_random_uuid();
BEGIN
    IF found IS NOT NULL THEN
        RETURN found;
    END IF;
    PERFORM set_config('app.tenant_id', fresh::text, true);
    INSERT INTO public.tenants (tenant_id, slug, active_set)
    VALUES (fresh, wanted, (SELECT set_id FROM public.embedding_sets WHERE state = 'active' ORDER BY set_id DESC LIMIT 1))
    ON CONFLICT (slug) DO NOTHING;
    PERFORM set_config('app.tenant_id', '', true);
    RETURN app.resolve_tenant(wanted);
END $$;

-- The set of a model, with its own partition whose rows cannot have another dimension.
CREATE FUNCTION app.ensure_embedding_set(
    set_name text, set_provider text, set_model text, set_version text, set_dimensions int, set_window int, set_floor float8
) RETURNS int
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp
    AS $$
DECLARE
    found int;
    partition text;
BEGIN
    LOCK TABLE public.embedding_sets IN SHARE ROW EXCLUSIVE MODE;
    SELECT set_id INTO found FROM public.embedding_sets
     WHERE provider = set_provider AND model = set_model AND version = set_version AND dimensions = set_dimensions;
    IF found IS NOT NULL THEN
        RETURN found;
    END IF;
    INSERT INTO public.embedding_sets (name, provider, model, version, dimensions, token_window, absolute_floor, state)
    VALUES (set_name, set_provider, set_model, set_version, set_dimensions, set_window, set_floor,
            CASE WHEN EXISTS (SELECT FROM public.embedding_sets WHERE state = 'active') THEN 'building' ELSE 'active' END)
    RETURNING set_id INTO found;
    partition := format('chunk_embeddings_%s', found);
    EXECUTE format('CREATE TABLE public.%I PARTITION OF public.chunk_embeddings FOR VALUES IN (%s)', partition, found);
    EXECUTE format('ALTER TABLE public.%I ADD CONSTRAINT dimensions CHECK (vector_dims(embedding) = %s)',
                   partition, set_dimensions);
    IF set_dimensions > 990 THEN
        EXECUTE format('ALTER TABLE public.%I ALTER COLUMN embedding SET STORAGE PLAIN', partition);
    END IF;
    EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY', partition);
    EXECUTE format('ALTER TABLE public.%I FORCE ROW LEVEL SECURITY', partition);
    EXECUTE format('CREATE POLICY tenant_isolation ON public.%I USING (tenant_id = app.tenant())'
                   ' WITH CHECK (tenant_id = app.tenant())', partition);
    RETURN found;
END $$;

-- Forced row-level security on every table that has a tenant.
DO $$
DECLARE
    protected text;
BEGIN
    FOR protected IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attname = 'tenant_id'
    LOOP
        EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY', protected);
        EXECUTE format('ALTER TABLE public.%I FORCE ROW LEVEL SECURITY', protected);
        EXECUTE format('CREATE POLICY tenant_isolation ON public.%I USING (tenant_id = app.tenant())'
                       ' WITH CHECK (tenant_id = app.tenant())', protected);
    END LOOP;
END $$;

-- The definer functions above run as the owner, who sees slugs and nothing else of other tenants.
CREATE POLICY owner_resolves ON tenants FOR SELECT TO docmill_owner USING (true);

-- The sweep role only finds: ids, states and times, across tenants.
CREATE POLICY sweep_finds ON sources FOR SELECT TO docmill_sweep USING (true);
CREATE POLICY sweep_finds ON generations FOR SELECT TO docmill_sweep USING (true);
CREATE POLICY sweep_finds ON ingest_stages FOR SELECT TO docmill_sweep USING (true);
CREATE POLICY sweep_finds ON ingest_units FOR SELECT TO docmill_sweep USING (true);
CREATE POLICY sweep_finds ON deletion_receipts FOR SELECT TO docmill_sweep USING (true);
CREATE POLICY sweep_finds ON files FOR SELECT TO docmill_sweep USING (true);

GRANT USAGE ON SCHEMA public, app TO docmill_gateway, docmill_worker, docmill_sweep, docmill_migrator;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA app FROM PUBLIC;
GRANT EXECUTE ON FUNCTION app.tenant() TO docmill_gateway, docmill_worker, docmill_sweep, docmill_migrator, docmill_backup;
GRANT EXECUTE ON FUNCTION app.resolve_tenant(text) TO docmill_gateway, docmill_migrator;
GRANT EXECUTE ON FUNCTION app.create_tenant(text) TO docmill_migrator;
GRANT EXECUTE ON FUNCTION app.ensure_embedding_set(text, text, text, text, int, int, float8) TO docmill_migrator;

GRANT SELECT ON embedding_sets, alembic_version TO docmill_gateway, docmill_worker, docmill_sweep;
GRANT SELECT ON tenants TO docmill_gateway, docmill_worker;
-- Publication locks its tenant's row FOR SHARE, which needs a right to update a column of it.
GRANT UPDATE (active_set, standby_set) ON tenants TO docmill_worker;

GRANT SELECT, INSERT, UPDATE, DELETE ON subjects, memberships, idempotency_keys, files, file_versions, sources,
    source_files, generations, ingest_stages, ingest_units, deletion_receipts TO docmill_gateway, docmill_worker;
GRANT SELECT ON blocks, pages, chunks, chunk_terms, chunk_embeddings TO docmill_gateway;
GRANT SELECT, INSERT, UPDATE, DELETE ON blobs, blob_refs, blocks, pages, chunks, chunk_terms, chunk_embeddings
    TO docmill_worker;

GRANT SELECT (tenant_id, source_id, status, desired_generation, published_generation, removed_at) ON sources TO docmill_sweep;
GRANT SELECT (tenant_id, source_id, generation, priority, status, created_at, admitted_at, finished_at, page_count)
    ON generations TO docmill_sweep;
GRANT SELECT (tenant_id, source_id, generation, stage, status, lease_until, available_at, rung_at, queued_at, lost_leases)
    ON ingest_stages TO docmill_sweep;
GRANT SELECT (tenant_id, source_id, generation, stage, unit, status, lease_until, available_at, rung_at, queued_at, lost_leases)
    ON ingest_units TO docmill_sweep;
GRANT SELECT (tenant_id, receipt_id, created_at, completed_at) ON deletion_receipts TO docmill_sweep;
GRANT SELECT (tenant_id, file_id, state, created_at) ON files TO docmill_sweep;
