-- Tenants, conversations, events, the mirror's outbox. Run by the owner role; the services
-- run as annals_app, which owns nothing and cannot bypass row-level security.
CREATE SCHEMA annals;
GRANT USAGE ON SCHEMA annals TO annals_app;
SET LOCAL search_path = annals;

-- The tenant of the running transaction. NULL, hence no rows at all, when none was set:
-- a setting that was once set in a session reads back as '' in the next transaction.
CREATE FUNCTION current_tenant() RETURNS uuid
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN nullif(current_setting('annals.tenant_id', true), '')::uuid;

CREATE TABLE tenants (
  tenant_id    uuid PRIMARY KEY,
  display_name text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE agents (
  tenant_id          uuid NOT NULL REFERENCES tenants,
  agent_id           uuid NOT NULL,
  display_name       text NOT NULL,
  system_prompt      text NOT NULL,
  model              text NOT NULL,
  temperature        double precision,
  tools_json         text NOT NULL,
  output_schema_json text NOT NULL,
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, agent_id)
);

CREATE TABLE api_keys (
  tenant_id    uuid NOT NULL REFERENCES tenants,
  api_key_id   uuid NOT NULL,
  key_hash     bytea NOT NULL,
  display_name text NOT NULL,
  scopes       text[] NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  revoked_at   timestamptz,
  PRIMARY KEY (tenant_id, api_key_id),
  UNIQUE (tenant_id, key_hash)
);

CREATE TABLE conversations (
  tenant_id       uuid NOT NULL REFERENCES tenants,
  conversation_id uuid NOT NULL,
  agent_id        uuid,
  user_id         text,
  session_id      text,
  title           text NOT NULL DEFAULT '',
  status          text NOT NULL DEFAULT 'active'
                  CHECK (status IN ('active', 'completed', 'archived')),
  client_context  jsonb NOT NULL DEFAULT '{}',
  metadata        jsonb NOT NULL DEFAULT '{}',
  end_summary     text NOT NULL DEFAULT '',
  -- The creating call, and what a retry of it must match.
  request_id      uuid,
  creation_hash   bytea,
  next_seq        bigint NOT NULL DEFAULT 1,
  event_count     bigint NOT NULL DEFAULT 0,
  message_count   bigint NOT NULL DEFAULT 0,
  token_count     bigint NOT NULL DEFAULT 0,
  version         bigint NOT NULL DEFAULT 1,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  last_event_at   timestamptz,
  -- last_event_at, or created_at while there is no event: the order of lists.
  active_at       timestamptz NOT NULL DEFAULT now(),
  ended_at        timestamptz,
  deleted_at      timestamptz,
  PRIMARY KEY (tenant_id, conversation_id),
  FOREIGN KEY (tenant_id, agent_id) REFERENCES agents,
  CONSTRAINT conversations_one_owner CHECK (user_id IS NULL OR session_id IS NULL)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX conversations_request_id ON conversations (tenant_id, request_id)
  WHERE request_id IS NOT NULL;
CREATE INDEX conversations_by_activity ON conversations (tenant_id, active_at);
CREATE INDEX conversations_by_session ON conversations (tenant_id, session_id, active_at)
  WHERE session_id IS NOT NULL;
CREATE INDEX conversations_by_user ON conversations (tenant_id, user_id, active_at)
  WHERE user_id IS NOT NULL;
CREATE INDEX conversations_by_agent ON conversations (tenant_id, agent_id, active_at)
  WHERE agent_id IS NOT NULL;

-- The latest snapshot of every event.
CREATE TABLE events (
  tenant_id            uuid NOT NULL,
  conversation_id      uuid NOT NULL,
  seq                  bigint NOT NULL,
  event_id             uuid NOT NULL,
  type                 text NOT NULL
                       CHECK (type IN ('message', 'tool_call', 'tool_result', 'system', 'error')),
  role                 text CHECK (role IN ('user', 'assistant', 'system', 'tool')),
  content              text,
  author_name          text,
  tool_call_id         text,
  tool_name            text,
  tool_input           text,
  tool_result          text,
  is_error             boolean NOT NULL DEFAULT false,
  error_type           text,
  error_message        text,
  model                text,
  provider_response_id text,
  usage                jsonb,
  parent_event_id      uuid,
  metadata             jsonb,
  token_count          integer NOT NULL,
  event_time           timestamptz NOT NULL,
  created_at           timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, conversation_id, seq),
  -- No foreign key to conversations: every insert holds the conversation's row lock, and a
  -- check per event would cost a tenth of the write path.
  UNIQUE (tenant_id, event_id)
);
CREATE INDEX events_by_tool_call ON events (tenant_id, conversation_id, tool_call_id)
  WHERE tool_call_id IS NOT NULL;

-- Append-only history: one row for every change of an event.
CREATE TABLE observations (
  tenant_id       uuid NOT NULL,
  event_id        uuid NOT NULL,
  version         integer NOT NULL,
  conversation_id uuid NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('store', 'edit', 'revert', 'delete', 'restore')),
  idempotency_key text,
  payload_hash    bytea NOT NULL,
  created_at      timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, event_id, version)
);
CREATE UNIQUE INDEX observations_idempotency_key
  ON observations (tenant_id, conversation_id, idempotency_key)
  WHERE idempotency_key IS NOT NULL;

-- Calls that carried a request_id, and what they stored.
CREATE TABLE append_requests (
  tenant_id       uuid NOT NULL,
  conversation_id uuid NOT NULL,
  request_id      uuid NOT NULL,
  payload_hash    bytea NOT NULL,
  event_ids       uuid[] NOT NULL,
  created_at      timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, conversation_id, request_id)
);

-- Units of embedding. Text is not copied: offsets point into the event's text.
CREATE TABLE chunks (
  tenant_id       uuid NOT NULL,
  chunk_id        uuid NOT NULL,
  event_id        uuid NOT NULL,
  conversation_id uuid NOT NULL,
  chunk_index     integer NOT NULL,
  start_char      integer NOT NULL,
  end_char        integer NOT NULL,
  token_count     integer NOT NULL,
  content_hash    bytea NOT NULL,
  -- float16, little endian.
  embedding       bytea NOT NULL,
  embedding_model text NOT NULL,
  PRIMARY KEY (tenant_id, chunk_id)
);
CREATE INDEX chunks_by_event ON chunks (tenant_id, event_id);

-- Keys of rows whose mirror may be stale. Level-triggered: the worker reads the row itself.
CREATE TABLE outbox (
  tenant_id       uuid NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('event', 'conversation')),
  key             uuid NOT NULL,
  conversation_id uuid NOT NULL,
  -- Bumped by every change, so that an acknowledgement of an older one is refused.
  generation      bigint NOT NULL DEFAULT 1,
  attempts        integer NOT NULL DEFAULT 0,
  enqueued_at     timestamptz NOT NULL DEFAULT now(),
  -- Not handed out before this moment: a lease, a pause after a failure, or now.
  available_at    timestamptz NOT NULL DEFAULT now(),
  lease_owner     text,
  parked_at       timestamptz,
  last_error      text,
  PRIMARY KEY (tenant_id, kind, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX outbox_by_availability ON outbox (available_at) WHERE parked_at IS NULL;
CREATE INDEX outbox_by_conversation ON outbox (tenant_id, conversation_id);

-- Isolation. Every table, also for its owner.
DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['tenants', 'agents', 'api_keys', 'conversations', 'events',
                              'observations', 'append_requests', 'chunks', 'outbox']
  LOOP
    EXECUTE format('ALTER TABLE annals.%I ENABLE ROW LEVEL SECURITY', name);
    EXECUTE format('ALTER TABLE annals.%I FORCE ROW LEVEL SECURITY', name);
    EXECUTE format(
      'CREATE POLICY tenant_isolation ON annals.%I TO annals_app '
      'USING (tenant_id = annals.current_tenant()) '
      'WITH CHECK (tenant_id = annals.current_tenant())', name);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON annals.%I TO annals_app', name);
  END LOOP;
END $$;
REVOKE UPDATE, DELETE ON observations FROM annals_app;

-- The owner reads across tenants only inside the functions below, which hand out keys and
-- counts but never content.
CREATE POLICY owner_functions ON tenants TO CURRENT_USER USING (true);
CREATE POLICY owner_functions ON outbox TO CURRENT_USER USING (true) WITH CHECK (true);

CREATE FUNCTION list_tenants(p_after timestamptz, p_after_id uuid, p_limit integer)
  RETURNS SETOF tenants
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  SELECT * FROM tenants
  WHERE p_after_id IS NULL OR (created_at, tenant_id) > (p_after, p_after_id)
  ORDER BY created_at, tenant_id
  LIMIT p_limit;
END;

CREATE FUNCTION claim_outbox(p_owner text, p_limit integer, p_lease interval)
  RETURNS TABLE (tenant_id uuid, kind text, key uuid, conversation_id uuid,
                 generation bigint, attempts integer)
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  UPDATE outbox AS o
  SET available_at = clock_timestamp() + p_lease, lease_owner = p_owner, attempts = o.attempts + 1
  FROM (
    SELECT c.tenant_id, c.kind, c.key FROM outbox AS c
    WHERE c.parked_at IS NULL AND c.available_at <= clock_timestamp()
    ORDER BY c.available_at
    LIMIT p_limit
    FOR UPDATE SKIP LOCKED
  ) AS due
  WHERE o.tenant_id = due.tenant_id AND o.kind = due.kind AND o.key = due.key
  RETURNING o.tenant_id, o.kind, o.key, o.conversation_id, o.generation, o.attempts;
END;

CREATE FUNCTION release_outbox(p_owner text) RETURNS bigint
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  WITH released AS (
    UPDATE outbox SET available_at = clock_timestamp(), lease_owner = NULL
    WHERE lease_owner = p_owner AND parked_at IS NULL
    RETURNING 1
  )
  SELECT count(*) FROM released;
END;

CREATE FUNCTION outbox_totals(OUT pending bigint, OUT parked bigint, OUT lag_seconds double precision)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  SELECT count(*) FILTER (WHERE parked_at IS NULL), count(*) FILTER (WHERE parked_at IS NOT NULL),
         coalesce(extract(epoch FROM
           clock_timestamp() - min(enqueued_at) FILTER (WHERE parked_at IS NULL)), 0)
  FROM outbox;
END;

REVOKE ALL ON FUNCTION list_tenants, claim_outbox, release_outbox, outbox_totals FROM PUBLIC;
GRANT EXECUTE ON FUNCTION list_tenants, claim_outbox, release_outbox, outbox_totals TO annals_app;
