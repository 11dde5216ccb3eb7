-- Contexts as the context service assembled them, compressed. Unlogged: a crash may empty it, and
-- what it held is neither in the write-ahead log nor in its archive.
SET LOCAL search_path = annals;

CREATE UNLOGGED TABLE context_cache (
  tenant_id       uuid NOT NULL,
  conversation_id uuid NOT NULL,
  -- What was asked for and by which code.
  request_digest  bytea NOT NULL CHECK (octet_length(request_digest) = 32),
  -- What the answer depends on besides; see get_cached_context.sql.
  state           bytea NOT NULL CHECK (octet_length(state) = 32),
  context_version text NOT NULL CHECK (char_length(context_version) BETWEEN 1 AND 64),
  body            bytea NOT NULL,
  body_bytes      integer NOT NULL CHECK (body_bytes > 0),
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at      timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, conversation_id, request_digest, state),
  FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations
);
-- It comes compressed.
ALTER TABLE context_cache ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE INDEX context_cache_by_age ON context_cache (tenant_id, created_at) INCLUDE (body_bytes);

-- When a conversation's summaries last came or were outdated: part of that state.
CREATE INDEX summaries_by_change
  ON summaries (tenant_id, conversation_id, greatest(created_at, stale_at));

ALTER TABLE context_cache ENABLE ROW LEVEL SECURITY;
ALTER TABLE context_cache FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON context_cache TO annals_app
  USING (tenant_id = current_tenant()) WITH CHECK (tenant_id = current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON context_cache TO annals_app;
