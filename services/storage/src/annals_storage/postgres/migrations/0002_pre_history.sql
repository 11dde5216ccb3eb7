-- Turns, branches, memories, relationships, ownership, lifecycle. Additive: code of 0001 keeps
-- running on it.
SET LOCAL search_path = annals;

-- Ownership ---------------------------------------------------------------------------------

ALTER TABLE agents
  ADD COLUMN end_user_mode text NOT NULL DEFAULT 'trusted'
    CHECK (end_user_mode IN ('anonymous', 'trusted', 'signed')),
  ADD COLUMN context_injection jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN provider_logs_enabled boolean NOT NULL DEFAULT false;

ALTER TABLE api_keys
  ADD COLUMN kind text NOT NULL DEFAULT 'secret' CHECK (kind IN ('secret', 'publishable')),
  ADD COLUMN agent_id uuid,
  ADD FOREIGN KEY (tenant_id, agent_id) REFERENCES agents,
  ADD CONSTRAINT api_keys_agent CHECK ((kind = 'publishable') = (agent_id IS NOT NULL));

CREATE TABLE signing_keys (
  tenant_id        uuid NOT NULL REFERENCES tenants,
  signing_key_id   uuid NOT NULL,
  display_name     text NOT NULL,
  algorithm        text NOT NULL CHECK (algorithm IN ('HS256', 'RS256', 'ES256', 'EdDSA')),
  public_key_pem   text,
  -- HS256: encrypted by a key that the database does not hold.
  encrypted_secret bytea,
  issuer           text NOT NULL,
  audience         text NOT NULL,
  created_at       timestamptz NOT NULL DEFAULT now(),
  expires_at       timestamptz,
  revoked_at       timestamptz,
  PRIMARY KEY (tenant_id, signing_key_id),
  CHECK ((algorithm = 'HS256') = (encrypted_secret IS NOT NULL)),
  CHECK ((algorithm = 'HS256') = (public_key_pem IS NULL))
);

-- A session belongs to the user it was first merged into.
CREATE TABLE session_merges (
  tenant_id   uuid NOT NULL REFERENCES tenants,
  session_id  text NOT NULL,
  user_id     text NOT NULL,
  moved_count bigint NOT NULL,
  api_key_id  uuid,
  merged_at   timestamptz NOT NULL DEFAULT now(),
  updated_at  timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, session_id)
);
CREATE INDEX session_merges_by_user ON session_merges (tenant_id, user_id);

-- Conversations and events ------------------------------------------------------------------

ALTER TABLE conversations
  -- The id the host application knows it by.
  ADD COLUMN host_id text,
  ADD COLUMN org_id text,
  ADD COLUMN provider_conversation_id text NOT NULL DEFAULT '',
  ADD COLUMN last_response_id text NOT NULL DEFAULT '',
  ADD COLUMN current_branch integer NOT NULL DEFAULT 1,
  ADD COLUMN branch_count integer NOT NULL DEFAULT 1,
  ADD COLUMN memory_count bigint NOT NULL DEFAULT 0,
  ADD COLUMN forked_from_conversation_id uuid,
  ADD COLUMN forked_from_event_id uuid,
  ADD COLUMN forked_from_seq bigint,
  ADD COLUMN archived_at timestamptz,
  -- At or before this seq nothing is left to move to cold storage.
  ADD COLUMN cold_until_seq bigint NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX conversations_host_id ON conversations (tenant_id, host_id)
  WHERE host_id IS NOT NULL;
CREATE INDEX conversations_by_org ON conversations (tenant_id, org_id, active_at)
  WHERE org_id IS NOT NULL;

-- Branch 1, the trunk, has no row. A branch's view is its own events and, of its ancestors,
-- those of `view_*`: three arrays of one length, oldest part first; a part holds the events of
-- one branch with view_after < seq <= view_until. The parts are disjoint and in order of seq.
CREATE TABLE branches (
  tenant_id       uuid NOT NULL,
  conversation_id uuid NOT NULL,
  branch          integer NOT NULL CHECK (branch > 1),
  parent_branch   integer NOT NULL,
  fork_seq        bigint NOT NULL,
  view_branches   integer[] NOT NULL,
  view_after      bigint[] NOT NULL,
  view_until      bigint[] NOT NULL,
  display_name    text NOT NULL DEFAULT '',
  request_id      uuid,
  request_hash    bytea,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, conversation_id, branch)
);
CREATE UNIQUE INDEX branches_request_id ON branches (tenant_id, conversation_id, request_id)
  WHERE request_id IS NOT NULL;

-- The parts of a branch's view: disjoint, events of `branch` with after_seq < seq <= until_seq.
-- No rows for a branch that does not exist.
CREATE FUNCTION branch_view(p_tenant uuid, p_conversation uuid, p_branch integer)
  RETURNS TABLE (branch integer, after_seq bigint, until_seq bigint)
  LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
  SELECT 1, 0::bigint, 4611686018427387904 WHERE p_branch = 1
  UNION ALL
  SELECT part.branch, part.after_seq, part.until_seq
  FROM branches AS b
  CROSS JOIN LATERAL (
    SELECT * FROM unnest(b.view_branches, b.view_after, b.view_until)
    UNION ALL
    SELECT b.branch, b.fork_seq, 4611686018427387904
  ) AS part (branch, after_seq, until_seq)
  WHERE b.tenant_id = p_tenant AND b.conversation_id = p_conversation AND b.branch = p_branch;
END;

-- The id of an event's copy in a forked conversation (UUID version 8): that of a copy's parent
-- follows without looking it up.
CREATE FUNCTION forked_event_id(p_conversation uuid, p_event uuid) RETURNS uuid
  LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN overlay(overlay(
    encode(substr(sha256(uuid_send(p_conversation) || uuid_send(p_event)), 1, 16), 'hex')
    PLACING '8' FROM 13) PLACING '8' FROM 17)::uuid;

ALTER TABLE events
  ADD COLUMN branch integer NOT NULL DEFAULT 1,
  ADD COLUMN turn_id text,
  ADD COLUMN status text NOT NULL DEFAULT 'complete'
    CHECK (status IN ('pending', 'complete', 'failed', 'incomplete')),
  ADD COLUMN version integer NOT NULL DEFAULT 1,
  ADD COLUMN edited_at timestamptz,
  ADD COLUMN deleted_at timestamptz,
  ADD COLUMN erased_at timestamptz,
  ADD COLUMN superseded_by uuid,
  ADD COLUMN origin_event_id uuid,
  -- Where the words are when they are not here: see cold_segments.
  ADD COLUMN cold_segment_id uuid;
CREATE INDEX events_by_branch ON events (tenant_id, conversation_id, branch, seq);
CREATE UNIQUE INDEX events_by_turn ON events (tenant_id, conversation_id, turn_id, branch)
  WHERE turn_id IS NOT NULL;
-- Of few events: what the chunks of must not be in the mirror.
CREATE INDEX events_gone ON events (tenant_id, event_id)
  WHERE deleted_at IS NOT NULL OR erased_at IS NOT NULL;
CREATE INDEX events_by_parent ON events (tenant_id, conversation_id, parent_event_id)
  WHERE parent_event_id IS NOT NULL;

ALTER TABLE observations
  ADD COLUMN api_key_id uuid,
  ADD COLUMN user_id text,
  ADD COLUMN session_id text,
  -- The transaction: what a watch of many conversations reads on from. NULL before this column.
  ADD COLUMN xid xid8;
ALTER TABLE observations ALTER COLUMN xid SET DEFAULT pg_current_xact_id();
CREATE INDEX observations_by_xid ON observations (tenant_id, xid) WHERE version = 1;

-- What an event was at a version that is not its newest: written when the next one is made.
CREATE TABLE observation_payloads (
  tenant_id uuid NOT NULL,
  event_id  uuid NOT NULL,
  version   integer NOT NULL,
  payload   jsonb NOT NULL,
  -- What a page of history is measured by, without reading the payload.
  payload_bytes integer NOT NULL GENERATED ALWAYS AS (octet_length(payload::text)) STORED,
  PRIMARY KEY (tenant_id, event_id, version)
);

-- Forks that carried a request_id.
CREATE TABLE fork_requests (
  tenant_id           uuid NOT NULL,
  conversation_id     uuid NOT NULL,
  request_id          uuid NOT NULL,
  request_hash        bytea NOT NULL,
  new_conversation_id uuid NOT NULL,
  PRIMARY KEY (tenant_id, conversation_id, request_id)
);

CREATE TABLE cold_segments (
  tenant_id       uuid NOT NULL,
  segment_id      uuid NOT NULL,
  conversation_id uuid NOT NULL,
  first_seq       bigint NOT NULL,
  last_seq        bigint NOT NULL,
  event_count     bigint NOT NULL,
  -- Below the root of the cold storage.
  path            text NOT NULL,
  sha256          bytea NOT NULL,
  stored_bytes    bigint NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, segment_id)
);
CREATE INDEX cold_segments_by_conversation ON cold_segments (tenant_id, conversation_id);

-- Chunks whose text was embedded before, wherever it stood.
CREATE INDEX chunks_by_content ON chunks (tenant_id, content_hash);

-- Memories ----------------------------------------------------------------------------------

CREATE TABLE memories (
  tenant_id        uuid NOT NULL,
  memory_id        uuid NOT NULL,
  conversation_id  uuid NOT NULL,
  content          text NOT NULL,
  tags             text[] NOT NULL DEFAULT '{}',
  metadata         jsonb NOT NULL DEFAULT '{}',
  -- float16, little endian, of length 1. NULL: the indexer has not embedded it yet.
  embedding        bytea,
  embedding_model  text,
  caller_embedding boolean NOT NULL DEFAULT false,
  idempotency_key  text,
  payload_hash     bytea NOT NULL,
  version          integer NOT NULL DEFAULT 1,
  created_at       timestamptz NOT NULL DEFAULT now(),
  updated_at       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations
);
CREATE INDEX memories_by_conversation ON memories (tenant_id, conversation_id, created_at);
CREATE INDEX memories_by_time ON memories (tenant_id, created_at);
CREATE UNIQUE INDEX memories_idempotency_key
  ON memories (tenant_id, conversation_id, idempotency_key) WHERE idempotency_key IS NOT NULL;

ALTER TABLE outbox DROP CONSTRAINT outbox_kind_check;
ALTER TABLE outbox ADD CONSTRAINT outbox_kind_check
  CHECK (kind IN ('event', 'conversation', 'memory'));

-- Relationships and attachments -------------------------------------------------------------

CREATE TABLE relationships (
  tenant_id       uuid NOT NULL,
  relationship_id uuid NOT NULL,
  type            text NOT NULL,
  source_kind     text NOT NULL,
  source_id       text NOT NULL,
  target_kind     text NOT NULL,
  target_id       text NOT NULL,
  score           double precision CHECK (score BETWEEN 0 AND 1),
  metadata        jsonb NOT NULL DEFAULT '{}',
  -- The conversation each end belongs to, where it belongs to one: what an erasure goes by.
  source_conversation_id uuid,
  target_conversation_id uuid,
  created_at      timestamptz NOT NULL DEFAULT now(),
  -- What indexes hold of the ids: one outside of Annals may be longer than an index can carry.
  source_key      text NOT NULL GENERATED ALWAYS AS (md5(source_id)) STORED,
  target_key      text NOT NULL GENERATED ALWAYS AS (md5(target_id)) STORED,
  PRIMARY KEY (tenant_id, relationship_id),
  CONSTRAINT relationships_once
    UNIQUE (tenant_id, source_kind, source_key, type, target_kind, target_key)
);
CREATE INDEX relationships_by_target ON relationships (tenant_id, target_kind, target_key);
CREATE INDEX relationships_by_source_conversation
  ON relationships (tenant_id, source_conversation_id);
CREATE INDEX relationships_by_target_conversation
  ON relationships (tenant_id, target_conversation_id);

CREATE TABLE attachments (
  tenant_id       uuid NOT NULL,
  attachment_id   uuid NOT NULL,
  conversation_id uuid NOT NULL,
  uri             text NOT NULL,
  media_type      text NOT NULL DEFAULT '',
  file_name       text NOT NULL DEFAULT '',
  size_bytes      bigint NOT NULL DEFAULT 0,
  sha256          text NOT NULL DEFAULT '',
  metadata        jsonb NOT NULL DEFAULT '{}',
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, attachment_id),
  FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations
);
CREATE INDEX attachments_by_conversation ON attachments (tenant_id, conversation_id, created_at);

-- Usage, logs -------------------------------------------------------------------------------

-- Written under the conversation's row lock, so rows of one conversation never deadlock.
CREATE TABLE usage_daily (
  tenant_id           uuid NOT NULL,
  conversation_id     uuid NOT NULL,
  day                 date NOT NULL,
  model               text NOT NULL,
  event_count         bigint NOT NULL,
  input_tokens        bigint NOT NULL,
  output_tokens       bigint NOT NULL,
  cached_input_tokens bigint NOT NULL,
  PRIMARY KEY (tenant_id, conversation_id, day, model)
);
CREATE INDEX usage_daily_by_day ON usage_daily (tenant_id, day);

CREATE TABLE provider_logs (
  tenant_id       uuid NOT NULL,
  provider_log_id uuid NOT NULL,
  conversation_id uuid NOT NULL,
  provider        text NOT NULL,
  model           text NOT NULL DEFAULT '',
  request_json    text NOT NULL,
  response_json   text NOT NULL,
  latency_ms      bigint NOT NULL,
  created_at      timestamptz NOT NULL DEFAULT now(),
  expires_at      timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, provider_log_id)
);
CREATE INDEX provider_logs_by_conversation ON provider_logs (tenant_id, conversation_id, created_at);
CREATE INDEX provider_logs_by_expiry ON provider_logs (tenant_id, expires_at);

CREATE TABLE search_log (
  tenant_id       uuid NOT NULL,
  search_id       uuid NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('events', 'memories')),
  query           text NOT NULL,
  conversation_id uuid,
  hit_count       integer NOT NULL,
  top_score       double precision NOT NULL,
  search_time_ms  double precision NOT NULL,
  api_key_id      uuid,
  user_id         text,
  session_id      text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, search_id)
);
CREATE INDEX search_log_by_time ON search_log (tenant_id, created_at);
CREATE INDEX search_log_by_conversation ON search_log (tenant_id, conversation_id)
  WHERE conversation_id IS NOT NULL;
CREATE INDEX search_log_by_user ON search_log (tenant_id, user_id) WHERE user_id IS NOT NULL;

-- Lifecycle ---------------------------------------------------------------------------------

CREATE TABLE retention_policies (
  tenant_id                uuid NOT NULL REFERENCES tenants,
  -- The zero UUID: the tenant's own.
  agent_id                 uuid NOT NULL,
  archive_after_days       integer CHECK (archive_after_days > 0),
  cold_after_days          integer CHECK (cold_after_days > 0),
  erase_after_days         integer CHECK (erase_after_days > 0),
  erase_deleted_after_days integer CHECK (erase_deleted_after_days > 0),
  provider_log_days        integer CHECK (provider_log_days > 0),
  search_log_days          integer CHECK (search_log_days > 0),
  updated_at               timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, agent_id)
);

-- Outlives what it is about, hence no foreign key to tenants.
CREATE TABLE erasure_receipts (
  tenant_id    uuid NOT NULL,
  receipt_id   uuid NOT NULL,
  scope        text NOT NULL CHECK (scope IN ('event', 'conversation', 'user', 'tenant')),
  subject      text NOT NULL,
  counts       jsonb NOT NULL,
  started_at   timestamptz NOT NULL,
  completed_at timestamptz,
  digest       text NOT NULL DEFAULT '',
  PRIMARY KEY (tenant_id, receipt_id)
);
CREATE INDEX erasure_receipts_by_subject ON erasure_receipts (tenant_id, scope, subject);
CREATE INDEX erasure_receipts_by_time ON erasure_receipts (tenant_id, started_at);

-- Isolation ---------------------------------------------------------------------------------

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['signing_keys', 'session_merges', 'branches',
                              'observation_payloads', 'fork_requests', 'cold_segments', 'memories',
                              'relationships', 'attachments', 'usage_daily', 'provider_logs',
                              'search_log', 'retention_policies', 'erasure_receipts']
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

-- Erasing is the one thing that takes observations away. The owner may, for the tenant of the
-- transaction alone.
CREATE POLICY owner_erases ON observations TO CURRENT_USER
  USING (tenant_id = annals.current_tenant());

CREATE FUNCTION erase_observations(p_event_ids uuid[]) RETURNS bigint
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  WITH erased AS (
    DELETE FROM observations
    WHERE tenant_id = current_tenant() AND event_id = ANY(p_event_ids)
    RETURNING 1
  )
  SELECT count(*) FROM erased;
END;

-- What a user did in conversations that are not theirs stays; that it was them goes.
CREATE FUNCTION forget_observer(p_user_id text, p_session_ids text[]) RETURNS bigint
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  WITH forgotten AS (
    UPDATE observations SET user_id = NULL, session_id = NULL
    WHERE tenant_id = current_tenant()
      AND (user_id = p_user_id OR session_id = ANY(p_session_ids))
    RETURNING 1
  )
  SELECT count(*) FROM forgotten;
END;
REVOKE ALL ON FUNCTION erase_observations, forget_observer FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_observations, forget_observer TO annals_app;
