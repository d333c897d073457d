-- Every table of the first schema. Frozen: a later change is a later migration.

CREATE TABLE embedding_sets (
    set_id INTEGER GENERATED ALWAYS AS IDENTITY,
    name TEXT NOT NULL,
    provider TEXT NOT NULL,
    model TEXT NOT NULL,
    version TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    token_window INTEGER NOT NULL,
    absolute_floor DOUBLE PRECISION NOT NULL,
    state TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_embedding_sets PRIMARY KEY (set_id),
    CONSTRAINT uq_embedding_sets_provider_model_version_dimensions UNIQUE (provider, model, version, dimensions),
    CONSTRAINT ck_embedding_sets_state CHECK (state IN ('building', 'active', 'standby', 'retired'))
);

CREATE TABLE tenants (
    tenant_id UUID NOT NULL,
    slug TEXT NOT NULL,
    active_set INTEGER NOT NULL,
    standby_set INTEGER,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_tenants PRIMARY KEY (tenant_id),
    CONSTRAINT uq_tenants_slug UNIQUE (slug),
    CONSTRAINT fk_tenants_active_set FOREIGN KEY(active_set) REFERENCES embedding_sets (set_id),
    CONSTRAINT fk_tenants_standby_set FOREIGN KEY(standby_set) REFERENCES embedding_sets (set_id)
);

CREATE TABLE blobs (
    tenant_id UUID NOT NULL,
    digest TEXT NOT NULL,
    body BYTEA NOT NULL,
    byte_size INTEGER NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_blobs PRIMARY KEY (tenant_id, digest),
    CONSTRAINT fk_blobs_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE deletion_receipts (
    tenant_id UUID NOT NULL,
    receipt_id UUID NOT NULL,
    source_ids UUID[] NOT NULL,
    file_ids UUID[] NOT NULL,
    auth_subjects TEXT[] NOT NULL,
    before JSONB,
    after JSONB,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    completed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_deletion_receipts PRIMARY KEY (tenant_id, receipt_id),
    CONSTRAINT fk_deletion_receipts_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE idempotency_keys (
    tenant_id UUID NOT NULL,
    principal TEXT NOT NULL,
    route TEXT NOT NULL,
    key TEXT NOT NULL,
    body_hash TEXT NOT NULL,
    status INTEGER,
    response JSONB,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_idempotency_keys PRIMARY KEY (tenant_id, principal, route, key),
    CONSTRAINT fk_idempotency_keys_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE subjects (
    tenant_id UUID NOT NULL,
    subject TEXT NOT NULL,
    subject_no INTEGER GENERATED ALWAYS AS IDENTITY,
    owner TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_subjects PRIMARY KEY (tenant_id, subject),
    CONSTRAINT uq_subjects_tenant_id_subject_no UNIQUE (tenant_id, subject_no),
    CONSTRAINT fk_subjects_tenant_id FOREIGN KEY(tenant_id) REFERENCES tenants (tenant_id)
);

CREATE TABLE blob_refs (
    tenant_id UUID NOT NULL,
    owner TEXT NOT NULL,
    digest TEXT NOT NULL,
    CONSTRAINT pk_blob_refs PRIMARY KEY (tenant_id, owner, digest),
    CONSTRAINT fk_blob_refs_tenant_id_digest FOREIGN KEY(tenant_id, digest) REFERENCES blobs (tenant_id, digest)
);

CREATE INDEX ix_blob_refs_digest ON blob_refs (tenant_id, digest);

CREATE TABLE files (
    tenant_id UUID NOT NULL,
    file_id UUID NOT NULL,
    auth_subject TEXT NOT NULL,
    filename TEXT NOT NULL,
    state TEXT NOT NULL,
    version INTEGER NOT NULL,
    low_confidence BOOLEAN DEFAULT false NOT NULL,
    ingest TEXT DEFAULT 'index' NOT NULL,
    priority TEXT DEFAULT 'interactive' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_files PRIMARY KEY (tenant_id, file_id),
    CONSTRAINT fk_files_tenant_id_auth_subject FOREIGN KEY(tenant_id, auth_subject) REFERENCES subjects (tenant_id, subject),
    CONSTRAINT ck_files_state CHECK (state IN ('pending', 'stored', 'quarantined', 'deleting', 'deleted'))
);

CREATE INDEX ix_files_listing ON files (tenant_id, auth_subject, created_at, file_id);

CREATE INDEX ix_files_unsettled ON files (tenant_id, state) WHERE state IN ('pending', 'deleting');

CREATE TABLE memberships (
    tenant_id UUID NOT NULL,
    member TEXT NOT NULL,
    subject TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_memberships PRIMARY KEY (tenant_id, member, subject),
    CONSTRAINT fk_memberships_tenant_id_subject FOREIGN KEY(tenant_id, subject) REFERENCES subjects (tenant_id, subject) ON DELETE CASCADE
);

CREATE TABLE sources (
    tenant_id UUID NOT NULL,
    source_id UUID NOT NULL,
    source_no BIGINT GENERATED ALWAYS AS IDENTITY,
    kind TEXT NOT NULL,
    url TEXT,
    title TEXT NOT NULL,
    media_type TEXT NOT NULL,
    auth_subject TEXT NOT NULL,
    subject_no INTEGER NOT NULL,
    indexed BOOLEAN NOT NULL,
    content_hash TEXT,
    status TEXT NOT NULL,
    desired_generation INTEGER NOT NULL,
    published_generation INTEGER,
    published_version INTEGER,
    chunk_count INTEGER DEFAULT 0 NOT NULL,
    term_total BIGINT DEFAULT 0 NOT NULL,
    page_count INTEGER DEFAULT 0 NOT NULL,
    confidence DOUBLE PRECISION,
    low_confidence BOOLEAN DEFAULT false NOT NULL,
    language TEXT,
    document_date TIMESTAMP WITH TIME ZONE,
    attributes JSONB DEFAULT '{}' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    published_at TIMESTAMP WITH TIME ZONE,
    removed_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_sources PRIMARY KEY (tenant_id, source_id),
    CONSTRAINT uq_sources_tenant_id_source_no UNIQUE (tenant_id, source_no),
    CONSTRAINT fk_sources_tenant_id_auth_subject FOREIGN KEY(tenant_id, auth_subject) REFERENCES subjects (tenant_id, subject),
    CONSTRAINT fk_sources_tenant_id_subject_no FOREIGN KEY(tenant_id, subject_no) REFERENCES subjects (tenant_id, subject_no),
    CONSTRAINT ck_sources_kind CHECK (kind IN ('file', 'url', 'artifact')),
    CONSTRAINT ck_sources_status CHECK (status IN ('pending', 'ingesting', 'ready', 'failed', 'cancelled', 'removed'))
);

CREATE INDEX ix_sources_listing ON sources (tenant_id, auth_subject, created_at, source_id);

CREATE UNIQUE INDEX uq_sources_same_content ON sources (tenant_id, auth_subject, content_hash, indexed) WHERE kind = 'file' AND status IN ('pending', 'ingesting', 'ready');

CREATE TABLE chunk_embeddings (
    tenant_id UUID NOT NULL,
    set_id INTEGER NOT NULL,
    source_no BIGINT NOT NULL,
    generation INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    subject_no INTEGER NOT NULL,
    embedding HALFVEC NOT NULL,
    CONSTRAINT pk_chunk_embeddings PRIMARY KEY (tenant_id, set_id, source_no, generation, ordinal),
    CONSTRAINT fk_chunk_embeddings_tenant_id_source_no FOREIGN KEY(tenant_id, source_no) REFERENCES sources (tenant_id, source_no) ON DELETE CASCADE
)
 PARTITION BY LIST (set_id);

CREATE TABLE chunk_terms (
    tenant_id UUID NOT NULL,
    term TEXT NOT NULL,
    subject_no INTEGER NOT NULL,
    source_no BIGINT NOT NULL,
    generation INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    tf SMALLINT NOT NULL,
    length INTEGER NOT NULL,
    CONSTRAINT pk_chunk_terms PRIMARY KEY (tenant_id, term, subject_no, source_no, generation, ordinal) INCLUDE (tf, length),
    CONSTRAINT fk_chunk_terms_tenant_id_source_no FOREIGN KEY(tenant_id, source_no) REFERENCES sources (tenant_id, source_no) ON DELETE CASCADE
);

CREATE INDEX ix_chunk_terms_generation ON chunk_terms (source_no, generation);

CREATE TABLE file_versions (
    tenant_id UUID NOT NULL,
    file_id UUID NOT NULL,
    version INTEGER NOT NULL,
    content_key TEXT NOT NULL,
    byte_size BIGINT NOT NULL,
    sha256 TEXT,
    declared_type TEXT NOT NULL,
    media_type TEXT NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    stored_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_file_versions PRIMARY KEY (tenant_id, file_id, version),
    CONSTRAINT fk_file_versions_tenant_id_file_id FOREIGN KEY(tenant_id, file_id) REFERENCES files (tenant_id, file_id) ON DELETE CASCADE
);

CREATE INDEX ix_file_versions_sha256 ON file_versions (tenant_id, sha256);

CREATE TABLE generations (
    tenant_id UUID NOT NULL,
    source_id UUID NOT NULL,
    generation INTEGER NOT NULL,
    file_id UUID,
    file_version INTEGER NOT NULL,
    priority TEXT NOT NULL,
    status TEXT NOT NULL,
    failure_code TEXT,
    failure_detail TEXT,
    chunker_version TEXT,
    title TEXT,
    warnings TEXT[] DEFAULT '{}' NOT NULL,
    page_count INTEGER DEFAULT 0 NOT NULL,
    block_count INTEGER DEFAULT 0 NOT NULL,
    chunk_count INTEGER DEFAULT 0 NOT NULL,
    keyword_chunks INTEGER DEFAULT 0 NOT NULL,
    term_total BIGINT DEFAULT 0 NOT NULL,
    confidence DOUBLE PRECISION,
    low_confidence BOOLEAN DEFAULT false NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    admitted_at TIMESTAMP WITH TIME ZONE,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_generations PRIMARY KEY (tenant_id, source_id, generation),
    CONSTRAINT fk_generations_tenant_id_source_id FOREIGN KEY(tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE,
    CONSTRAINT ck_generations_status CHECK (status IN ('queued', 'ingesting', 'published', 'failed', 'cancelled', 'superseded')),
    CONSTRAINT ck_generations_failure CHECK ((status = 'failed') = (failure_code IS NOT NULL))
);

CREATE INDEX ix_generations_backlog ON generations (priority, created_at) WHERE status = 'queued';

CREATE INDEX ix_generations_in_flight ON generations (tenant_id) WHERE status = 'ingesting';

CREATE TABLE source_files (
    tenant_id UUID NOT NULL,
    source_id UUID NOT NULL,
    file_id UUID NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT pk_source_files PRIMARY KEY (tenant_id, source_id, file_id),
    CONSTRAINT fk_source_files_tenant_id_source_id FOREIGN KEY(tenant_id, source_id) REFERENCES sources (tenant_id, source_id) ON DELETE CASCADE,
    CONSTRAINT fk_source_files_tenant_id_file_id FOREIGN KEY(tenant_id, file_id) REFERENCES files (tenant_id, file_id) ON DELETE CASCADE
);

CREATE INDEX ix_source_files_file_id ON source_files (tenant_id, file_id);

CREATE TABLE blocks (
    tenant_id UUID NOT NULL,
    source_id UUID NOT NULL,
    generation INTEGER NOT NULL,
    block INTEGER NOT NULL,
    page INTEGER,
    body TEXT NOT NULL,
    CONSTRAINT pk_blocks PRIMARY KEY (tenant_id, source_id, generation, block),
    CONSTRAINT fk_blocks_tenant_id_source_id_generation FOREIGN KEY(tenant_id, source_id, generation) REFERENCES generations (tenant_id, source_id, generation) ON DELETE CASCADE
);

CREATE TABLE chunks (
    tenant_id UUID NOT NULL,
    source_id UUID NOT NULL,
    generation INTEGER NOT NULL,
    ordinal INTEGER NOT NULL,
    chunk_id UUID NOT NULL,
    subject_no INTEGER NOT NULL,
    kind TEXT NOT NULL,
    content TEXT NOT NULL,
    heading_path TEXT[] NOT NULL,
    pages INTEGER[] NOT NULL,
    location JSONB NOT NULL,
    first_block INTEGER NOT NULL,
    last_block INTEGER NOT NULL,
    token_count INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    method TEXT NOT NULL,
    confidence DOUBLE PRECISION,
    attributes JSONB DEFAULT '{}' NOT NULL,
    CONSTRAINT pk_chunks PRIMARY KEY (tenant_id, source_id, generation, ordinal),
    CONSTRAINT fk_chunks_tenant_id_source_id_generation FOREIGN KEY(tenant_id, source_id, generation) REFERENCES generations (tenant_id, source_id, generation) ON DELETE CASCADE,
    CONSTRAINT ck_chunks_kind CHECK (kind IN ('text', 'table', 'code', 'transcript', 'description'))
);

CREATE INDEX ix_chunks_chunk_id ON chunks (chunk_id);

CREATE INDEX ix_chunks_content_hash ON chunks (content_hash, source_id);

CREATE TABLE ingest_stages (
    tenant_id UUID NOT NULL,
    source_id UUID NOT NULL,
    generation INTEGER NOT NULL,
    stage TEXT NOT NULL,
    status TEXT NOT NULL,
    token UUID,
    lease_until TIMESTAMP WITH TIME ZONE,
    heartbeat_at TIMESTAMP WITH TIME ZONE,
    attempts INTEGER DEFAULT 0 NOT NULL,
    sandbox_deaths INTEGER DEFAULT 0 NOT NULL,
    lost_leases INTEGER DEFAULT 0 NOT NULL,
    lost_alone INTEGER DEFAULT 0 NOT NULL,
    units_total INTEGER DEFAULT 0 NOT NULL,
    units_done INTEGER DEFAULT 0 NOT NULL,
    progress_done INTEGER DEFAULT 0 NOT NULL,
    progress_total INTEGER DEFAULT 0 NOT NULL,
    waiting_for TEXT,
    transient_count INTEGER DEFAULT 0 NOT NULL,
    available_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    rung_at TIMESTAMP WITH TIME ZONE,
    queued_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_ingest_stages PRIMARY KEY (tenant_id, source_id, generation, stage),
    CONSTRAINT fk_ingest_stages_tenant_id_source_id_generation FOREIGN KEY(tenant_id, source_id, generation) REFERENCES generations (tenant_id, source_id, generation) ON DELETE CASCADE,
    CONSTRAINT ck_ingest_stages_status CHECK (status IN ('queued', 'running', 'fanned', 'succeeded', 'failed')),
    CONSTRAINT ck_ingest_stages_token CHECK ((status = 'running') = (token IS NOT NULL))
);

CREATE INDEX ix_ingest_stages_open ON ingest_stages (status, available_at) WHERE status IN ('queued', 'running');

CREATE TABLE pages (
    tenant_id UUID NOT NULL,
    source_id UUID NOT NULL,
    generation INTEGER NOT NULL,
    page INTEGER NOT NULL,
    width DOUBLE PRECISION NOT NULL,
    height DOUBLE PRECISION NOT NULL,
    rotation INTEGER NOT NULL,
    method TEXT NOT NULL,
    confidence DOUBLE PRECISION,
    garble DOUBLE PRECISION NOT NULL,
    warning TEXT,
    CONSTRAINT pk_pages PRIMARY KEY (tenant_id, source_id, generation, page),
    CONSTRAINT fk_pages_tenant_id_source_id_generation FOREIGN KEY(tenant_id, source_id, generation) REFERENCES generations (tenant_id, source_id, generation) ON DELETE CASCADE,
    CONSTRAINT ck_pages_method CHECK (method IN ('native', 'ocr', 'mixed', 'vision', 'blank', 'skipped'))
);

CREATE TABLE ingest_units (
    tenant_id UUID NOT NULL,
    source_id UUID NOT NULL,
    generation INTEGER NOT NULL,
    stage TEXT NOT NULL,
    unit INTEGER NOT NULL,
    first_item INTEGER NOT NULL,
    last_item INTEGER NOT NULL,
    items BIGINT[],
    output TEXT,
    status TEXT NOT NULL,
    token UUID,
    lease_until TIMESTAMP WITH TIME ZONE,
    heartbeat_at TIMESTAMP WITH TIME ZONE,
    attempts INTEGER DEFAULT 0 NOT NULL,
    sandbox_deaths INTEGER DEFAULT 0 NOT NULL,
    lost_leases INTEGER DEFAULT 0 NOT NULL,
    lost_alone INTEGER DEFAULT 0 NOT NULL,
    waiting_for TEXT,
    transient_count INTEGER DEFAULT 0 NOT NULL,
    available_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    rung_at TIMESTAMP WITH TIME ZONE,
    queued_at TIMESTAMP WITH TIME ZONE DEFAULT clock_timestamp() NOT NULL,
    started_at TIMESTAMP WITH TIME ZONE,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT pk_ingest_units PRIMARY KEY (tenant_id, source_id, generation, stage, unit),
    CONSTRAINT fk_ingest_units_tenant_id_source_id_generation_stage FOREIGN KEY(tenant_id, source_id, generation, stage) REFERENCES ingest_stages (tenant_id, source_id, generation, stage) ON DELETE CASCADE,
    CONSTRAINT ck_ingest_units_status CHECK (status IN ('queued', 'running', 'succeeded', 'failed')),
    CONSTRAINT ck_ingest_units_token CHECK ((status = 'running') = (token IS NOT NULL))
);

CREATE INDEX ix_ingest_units_open ON ingest_units (status, available_at) WHERE status IN ('queued', 'running');

