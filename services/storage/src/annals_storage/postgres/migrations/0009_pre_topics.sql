-- Topics: clusters of the events of one conversation, found in the background. All of it follows from
-- the events and is made anew whenever that is asked for.
SET LOCAL search_path = annals;

CREATE TABLE topics (
  tenant_id       uuid NOT NULL,
  topic_id        uuid NOT NULL,
  conversation_id uuid NOT NULL,
  label           text NOT NULL DEFAULT '',
  -- [{"event_id": …, "version": …, "text": …}, …]: sentences, and beginnings of messages. Each is
  -- shown for as long as its event is of that version and there.
  summary         jsonb NOT NULL DEFAULT '[]',
  samples         jsonb NOT NULL DEFAULT '[]',
  -- The mean of its members' vectors, not normalised, as float16, little endian.
  centroid        bytea NOT NULL,
  embedding_model text NOT NULL,
  -- Of the events in view on the branch that was current.
  event_count     bigint NOT NULL,
  first_at        timestamptz,
  last_at         timestamptz,
  created_at      timestamptz NOT NULL DEFAULT now(),
  updated_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, topic_id)
);
CREATE INDEX topics_by_size ON topics (tenant_id, conversation_id, event_count);

-- Every event that was looked at, of any branch. Without a topic: it is like no other.
CREATE TABLE topic_members (
  tenant_id       uuid NOT NULL,
  conversation_id uuid NOT NULL,
  seq             bigint NOT NULL,
  topic_id        uuid,
  branch          integer NOT NULL,
  event_version   integer NOT NULL,
  event_time      timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, conversation_id, seq)
);
CREATE INDEX topic_members_by_topic ON topic_members (tenant_id, topic_id, seq)
  WHERE topic_id IS NOT NULL;

-- How much was said of what on which day, in UTC, on the branch that was current. The topic is the
-- nil UUID for what belongs to none.
CREATE TABLE topic_days (
  tenant_id       uuid NOT NULL,
  conversation_id uuid NOT NULL,
  day             date NOT NULL,
  topic_id        uuid NOT NULL,
  event_count     bigint NOT NULL,
  PRIMARY KEY (tenant_id, conversation_id, day, topic_id)
);

-- When a conversation was clustered as a whole.
CREATE TABLE topic_runs (
  tenant_id       uuid NOT NULL,
  conversation_id uuid NOT NULL,
  branch          integer NOT NULL,
  event_count     bigint NOT NULL,
  embedding_model text NOT NULL,
  parameters      text NOT NULL,
  clustered_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (tenant_id, conversation_id)
);

DO $$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['topics', 'topic_members', 'topic_days', 'topic_runs']
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
