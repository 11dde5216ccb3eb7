-- What all migrations add up to. Written by `python -m tests.migration.dump_schema`, never by
-- hand; tests/migration checks it. The database itself is made by the migrations alone.

CREATE SCHEMA annals;

ALTER SCHEMA annals OWNER TO annals_owner;

CREATE TABLE annals.outbox (
    tenant_id uuid NOT NULL,
    kind text NOT NULL,
    key uuid NOT NULL,
    conversation_id uuid NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    enqueued_at timestamp with time zone DEFAULT now() NOT NULL,
    available_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_owner text,
    parked_at timestamp with time zone,
    last_error text,
    CONSTRAINT outbox_kind_check CHECK ((kind = ANY (ARRAY['event'::text, 'conversation'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02');

ALTER TABLE ONLY annals.outbox FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.outbox OWNER TO annals_owner;

CREATE FUNCTION annals.claim_outbox(p_owner text, p_limit integer, p_lease interval) RETURNS TABLE(tenant_id uuid, kind text, key uuid, conversation_id uuid, generation bigint, attempts integer)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 UPDATE annals.outbox o SET available_at = (clock_timestamp() + claim_outbox.p_lease), lease_owner = claim_outbox.p_owner, attempts = (o.attempts + 1)
    FROM ( SELECT c.tenant_id,
             c.kind,
             c.key
            FROM annals.outbox c
           WHERE ((c.parked_at IS NULL) AND (c.available_at <= clock_timestamp()))
           ORDER BY c.available_at
          LIMIT claim_outbox.p_limit
          FOR UPDATE OF c SKIP LOCKED) due
   WHERE ((o.tenant_id = due.tenant_id) AND (o.kind = due.kind) AND (o.key = due.key))
   RETURNING o.tenant_id,
     o.kind,
     o.key,
     o.conversation_id,
     o.generation,
     o.attempts;
END;

ALTER FUNCTION annals.claim_outbox(p_owner text, p_limit integer, p_lease interval) OWNER TO annals_owner;

CREATE FUNCTION annals.current_tenant() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('annals.tenant_id'::text, true), ''::text))::uuid;

ALTER FUNCTION annals.current_tenant() OWNER TO annals_owner;

CREATE TABLE annals.tenants (
    tenant_id uuid NOT NULL,
    display_name text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY annals.tenants FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.tenants OWNER TO annals_owner;

CREATE FUNCTION annals.list_tenants(p_after timestamp with time zone, p_after_id uuid, p_limit integer) RETURNS SETOF annals.tenants
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 SELECT tenants.tenant_id,
     tenants.display_name,
     tenants.created_at
    FROM annals.tenants
   WHERE ((list_tenants.p_after_id IS NULL) OR (ROW(tenants.created_at, tenants.tenant_id) > ROW(list_tenants.p_after, list_tenants.p_after_id)))
   ORDER BY tenants.created_at, tenants.tenant_id
  LIMIT list_tenants.p_limit;
END;

ALTER FUNCTION annals.list_tenants(p_after timestamp with time zone, p_after_id uuid, p_limit integer) OWNER TO annals_owner;

CREATE FUNCTION annals.outbox_totals(OUT pending bigint, OUT parked bigint, OUT lag_seconds double precision) RETURNS record
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 SELECT count(*) FILTER (WHERE (outbox.parked_at IS NULL)) AS count,
     count(*) FILTER (WHERE (outbox.parked_at IS NOT NULL)) AS count,
     COALESCE(EXTRACT(epoch FROM (clock_timestamp() - min(outbox.enqueued_at) FILTER (WHERE (outbox.parked_at IS NULL)))), (0)::numeric) AS "coalesce"
    FROM annals.outbox;
END;

ALTER FUNCTION annals.outbox_totals(OUT pending bigint, OUT parked bigint, OUT lag_seconds double precision) OWNER TO annals_owner;

CREATE FUNCTION annals.release_outbox(p_owner text) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 WITH released AS (
          UPDATE annals.outbox SET available_at = clock_timestamp(), lease_owner = NULL::text
           WHERE ((outbox.lease_owner = release_outbox.p_owner) AND (outbox.parked_at IS NULL))
           RETURNING 1 AS "?column?"
         )
  SELECT count(*) AS count
    FROM released;
END;

ALTER FUNCTION annals.release_outbox(p_owner text) OWNER TO annals_owner;

CREATE TABLE annals.agents (
    tenant_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    display_name text NOT NULL,
    system_prompt text NOT NULL,
    model text NOT NULL,
    temperature double precision,
    tools_json text NOT NULL,
    output_schema_json text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY annals.agents FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.agents OWNER TO annals_owner;

CREATE TABLE annals.api_keys (
    tenant_id uuid NOT NULL,
    api_key_id uuid NOT NULL,
    key_hash bytea NOT NULL,
    display_name text NOT NULL,
    scopes text[] NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone
);

ALTER TABLE ONLY annals.api_keys FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.api_keys OWNER TO annals_owner;

CREATE TABLE annals.append_requests (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    request_id uuid NOT NULL,
    payload_hash bytea NOT NULL,
    event_ids uuid[] NOT NULL,
    created_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY annals.append_requests FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.append_requests OWNER TO annals_owner;

CREATE TABLE annals.chunks (
    tenant_id uuid NOT NULL,
    chunk_id uuid NOT NULL,
    event_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    chunk_index integer NOT NULL,
    start_char integer NOT NULL,
    end_char integer NOT NULL,
    token_count integer NOT NULL,
    content_hash bytea NOT NULL,
    embedding bytea NOT NULL,
    embedding_model text NOT NULL
);

ALTER TABLE ONLY annals.chunks FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.chunks OWNER TO annals_owner;

CREATE TABLE annals.conversations (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    agent_id uuid,
    user_id text,
    session_id text,
    title text DEFAULT ''::text NOT NULL,
    status text DEFAULT 'active'::text NOT NULL,
    client_context jsonb DEFAULT '{}'::jsonb NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    end_summary text DEFAULT ''::text NOT NULL,
    request_id uuid,
    creation_hash bytea,
    next_seq bigint DEFAULT 1 NOT NULL,
    event_count bigint DEFAULT 0 NOT NULL,
    message_count bigint DEFAULT 0 NOT NULL,
    token_count bigint DEFAULT 0 NOT NULL,
    version bigint DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    last_event_at timestamp with time zone,
    active_at timestamp with time zone DEFAULT now() NOT NULL,
    ended_at timestamp with time zone,
    deleted_at timestamp with time zone,
    CONSTRAINT conversations_one_owner CHECK (((user_id IS NULL) OR (session_id IS NULL))),
    CONSTRAINT conversations_status_check CHECK ((status = ANY (ARRAY['active'::text, 'completed'::text, 'archived'::text])))
)
WITH (fillfactor='80');

ALTER TABLE ONLY annals.conversations FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.conversations OWNER TO annals_owner;

CREATE TABLE annals.events (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    seq bigint NOT NULL,
    event_id uuid NOT NULL,
    type text NOT NULL,
    role text,
    content text,
    author_name text,
    tool_call_id text,
    tool_name text,
    tool_input text,
    tool_result text,
    is_error boolean DEFAULT false NOT NULL,
    error_type text,
    error_message text,
    model text,
    provider_response_id text,
    usage jsonb,
    parent_event_id uuid,
    metadata jsonb,
    token_count integer NOT NULL,
    event_time timestamp with time zone NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT events_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'system'::text, 'tool'::text]))),
    CONSTRAINT events_type_check CHECK ((type = ANY (ARRAY['message'::text, 'tool_call'::text, 'tool_result'::text, 'system'::text, 'error'::text])))
);

ALTER TABLE ONLY annals.events FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.events OWNER TO annals_owner;

CREATE TABLE annals.observations (
    tenant_id uuid NOT NULL,
    event_id uuid NOT NULL,
    version integer NOT NULL,
    conversation_id uuid NOT NULL,
    kind text NOT NULL,
    idempotency_key text,
    payload_hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    CONSTRAINT observations_kind_check CHECK ((kind = ANY (ARRAY['store'::text, 'edit'::text, 'revert'::text, 'delete'::text, 'restore'::text])))
);

ALTER TABLE ONLY annals.observations FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.observations OWNER TO annals_owner;

ALTER TABLE ONLY annals.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, agent_id);

ALTER TABLE ONLY annals.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, api_key_id);

ALTER TABLE ONLY annals.api_keys
    ADD CONSTRAINT api_keys_tenant_id_key_hash_key UNIQUE (tenant_id, key_hash);

ALTER TABLE ONLY annals.append_requests
    ADD CONSTRAINT append_requests_pkey PRIMARY KEY (tenant_id, conversation_id, request_id);

ALTER TABLE ONLY annals.chunks
    ADD CONSTRAINT chunks_pkey PRIMARY KEY (tenant_id, chunk_id);

ALTER TABLE ONLY annals.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (tenant_id, conversation_id);

ALTER TABLE ONLY annals.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (tenant_id, conversation_id, seq);

ALTER TABLE ONLY annals.events
    ADD CONSTRAINT events_tenant_id_event_id_key UNIQUE (tenant_id, event_id);

ALTER TABLE ONLY annals.observations
    ADD CONSTRAINT observations_pkey PRIMARY KEY (tenant_id, event_id, version);

ALTER TABLE ONLY annals.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (tenant_id, kind, key);

ALTER TABLE ONLY annals.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id);

CREATE INDEX chunks_by_event ON annals.chunks USING btree (tenant_id, event_id);

CREATE INDEX conversations_by_activity ON annals.conversations USING btree (tenant_id, active_at);

CREATE INDEX conversations_by_agent ON annals.conversations USING btree (tenant_id, agent_id, active_at) WHERE (agent_id IS NOT NULL);

CREATE INDEX conversations_by_session ON annals.conversations USING btree (tenant_id, session_id, active_at) WHERE (session_id IS NOT NULL);

CREATE INDEX conversations_by_user ON annals.conversations USING btree (tenant_id, user_id, active_at) WHERE (user_id IS NOT NULL);

CREATE UNIQUE INDEX conversations_request_id ON annals.conversations USING btree (tenant_id, request_id) WHERE (request_id IS NOT NULL);

CREATE INDEX events_by_tool_call ON annals.events USING btree (tenant_id, conversation_id, tool_call_id) WHERE (tool_call_id IS NOT NULL);

CREATE UNIQUE INDEX observations_idempotency_key ON annals.observations USING btree (tenant_id, conversation_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);

CREATE INDEX outbox_by_availability ON annals.outbox USING btree (available_at) WHERE (parked_at IS NULL);

CREATE INDEX outbox_by_conversation ON annals.outbox USING btree (tenant_id, conversation_id);

ALTER TABLE ONLY annals.agents
    ADD CONSTRAINT agents_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE ONLY annals.api_keys
    ADD CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE ONLY annals.conversations
    ADD CONSTRAINT conversations_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES annals.agents(tenant_id, agent_id);

ALTER TABLE ONLY annals.conversations
    ADD CONSTRAINT conversations_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE annals.agents ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.api_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.append_requests ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.chunks ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.conversations ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.events ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.observations ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.outbox ENABLE ROW LEVEL SECURITY;

CREATE POLICY owner_functions ON annals.outbox TO annals_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_functions ON annals.tenants TO annals_owner USING (true);

CREATE POLICY tenant_isolation ON annals.agents TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.api_keys TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.append_requests TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.chunks TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.conversations TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.events TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.observations TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.outbox TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.tenants TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

ALTER TABLE annals.tenants ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA annals TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.outbox TO annals_app;

REVOKE ALL ON FUNCTION annals.claim_outbox(p_owner text, p_limit integer, p_lease interval) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.claim_outbox(p_owner text, p_limit integer, p_lease interval) TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.tenants TO annals_app;

REVOKE ALL ON FUNCTION annals.list_tenants(p_after timestamp with time zone, p_after_id uuid, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.list_tenants(p_after timestamp with time zone, p_after_id uuid, p_limit integer) TO annals_app;

REVOKE ALL ON FUNCTION annals.outbox_totals(OUT pending bigint, OUT parked bigint, OUT lag_seconds double precision) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.outbox_totals(OUT pending bigint, OUT parked bigint, OUT lag_seconds double precision) TO annals_app;

REVOKE ALL ON FUNCTION annals.release_outbox(p_owner text) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.release_outbox(p_owner text) TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.agents TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.api_keys TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.append_requests TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.chunks TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.conversations TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.events TO annals_app;

GRANT SELECT,INSERT ON TABLE annals.observations TO annals_app;
