-- Summaries of parts of conversations, and the runs that made them.
SET LOCAL search_path = annals;

CREATE TABLE summaries (
  tenant_id       uuid NOT NULL,
  summary_id      uuid NOT NULL,
  conversation_id uuid NOT NULL,
  -- The first branch in view that reaches last_seq: every later one shares it.
  branch          integer NOT NULL CHECK (branch > 0),
  -- 0: of events; above: of summaries of the height below.
  height          smallint NOT NULL CHECK (height BETWEEN 0 AND 9),
  level           text NOT NULL CHECK (level IN ('brief', 'standard', 'detailed')),
  first_seq       bigint NOT NULL CHECK (first_seq > 0),
  last_seq        bigint NOT NULL,
  provider        text NOT NULL,
  model           text NOT NULL,
  body            text NOT NULL,
  token_count     integer NOT NULL CHECK (token_count >= 0),
  quality_score   double precision NOT NULL CHECK (quality_score BETWEEN 0 AND 1),
  -- [{"event_id", "seq", "speaker", "date", "text_start", "text_end"}]
  citations       jsonb NOT NULL,
  source_version  text NOT NULL,
  version         integer NOT NULL DEFAULT 1,
  created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When something in its range changed. It is not served any more.
  stale_at        timestamptz,
  PRIMARY KEY (tenant_id, summary_id),
  FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations,
  CONSTRAINT summaries_once
    UNIQUE (tenant_id, conversation_id, branch, provider, height, level, first_seq),
  CHECK (last_seq >= first_seq)
);
CREATE INDEX summaries_by_range ON summaries (tenant_id, conversation_id, first_seq, last_seq);

CREATE TABLE summary_runs (
  tenant_id       uuid NOT NULL,
  run_id          uuid NOT NULL,
  conversation_id uuid NOT NULL,
  provider        text NOT NULL,
  model           text NOT NULL,
  status          text NOT NULL CHECK (status IN ('completed', 'failed')),
  summary_count   integer NOT NULL,
  input_tokens    bigint NOT NULL CHECK (input_tokens >= 0),
  output_tokens   bigint NOT NULL CHECK (output_tokens >= 0),
  cost_micros     bigint NOT NULL CHECK (cost_micros >= 0),
  error           text NOT NULL DEFAULT '',
  started_at      timestamptz NOT NULL,
  ended_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (tenant_id, run_id),
  FOREIGN KEY (tenant_id, conversation_id) REFERENCES conversations
);
CREATE INDEX summary_runs_by_conversation
  ON summary_runs (tenant_id, conversation_id, ended_at, run_id);

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['summaries', 'summary_runs']
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

-- Whatever makes another version of an event, hides, shows or erases it, outdates what was made of
-- it, in the same transaction. Appends are no updates and pay nothing.
CREATE FUNCTION outdate_summaries() RETURNS trigger
  LANGUAGE plpgsql SET search_path = annals, pg_temp
AS $$
BEGIN
  UPDATE summaries SET stale_at = clock_timestamp()
  WHERE tenant_id = NEW.tenant_id AND conversation_id = NEW.conversation_id
    AND first_seq <= NEW.seq AND last_seq >= NEW.seq AND stale_at IS NULL;
  RETURN NULL;
END $$;

CREATE TRIGGER events_outdate_summaries
  AFTER UPDATE OF version, erased_at ON events
  FOR EACH ROW
  WHEN (OLD.version <> NEW.version OR OLD.erased_at IS DISTINCT FROM NEW.erased_at)
  EXECUTE FUNCTION outdate_summaries();
