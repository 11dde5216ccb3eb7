-- What all migrations add up to. Written by `python -m tests.migration.dump_schema`, never by
-- hand; tests/migration checks it. The database itself is made by the migrations alone.

CREATE SCHEMA annals;

ALTER SCHEMA annals OWNER TO annals_owner;

CREATE TABLE annals.branches (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    branch integer NOT NULL,
    parent_branch integer NOT NULL,
    fork_seq bigint NOT NULL,
    view_branches integer[] NOT NULL,
    view_after bigint[] NOT NULL,
    view_until bigint[] NOT NULL,
    display_name text DEFAULT ''::text NOT NULL,
    request_id uuid,
    request_hash bytea,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT branches_branch_check CHECK ((branch > 1))
);

ALTER TABLE ONLY annals.branches FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.branches OWNER TO annals_owner;

CREATE FUNCTION annals.branch_view(p_tenant uuid, p_conversation uuid, p_branch integer) RETURNS TABLE(branch integer, after_seq bigint, until_seq bigint)
    LANGUAGE sql STABLE PARALLEL SAFE
    BEGIN ATOMIC
 SELECT 1,
     (0)::bigint AS int8,
     '4611686018427387904'::bigint
   WHERE (branch_view.p_branch = 1)
 UNION ALL
  SELECT part.branch,
     part.after_seq,
     part.until_seq
    FROM (annals.branches b
      CROSS JOIN LATERAL ( SELECT unnest.unnest,
             unnest.unnest_1 AS unnest,
             unnest.unnest_2 AS unnest
            FROM UNNEST(b.view_branches, b.view_after, b.view_until) unnest(unnest, unnest_1, unnest_2)
         UNION ALL
          SELECT b.branch,
             b.fork_seq,
             '4611686018427387904'::bigint) part(branch, after_seq, until_seq))
   WHERE ((b.tenant_id = branch_view.p_tenant) AND (b.conversation_id = branch_view.p_conversation) AND (b.branch = branch_view.p_branch));
END;

ALTER FUNCTION annals.branch_view(p_tenant uuid, p_conversation uuid, p_branch integer) OWNER TO annals_owner;

CREATE FUNCTION annals.lease_outbox(p_owner text, p_limit integer, p_lease interval) RETURNS TABLE(tenant_id uuid, kind text, key uuid, conversation_id uuid, generation bigint, attempts integer, priority smallint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    AS $$
DECLARE
  tenants constant integer := greatest(1, p_limit / 16);
  free integer := p_limit;
  leased integer;
BEGIN
  RETURN QUERY SELECT * FROM lease_lane(1::smallint, p_owner, free / 8, p_lease, tenants);
  GET DIAGNOSTICS leased = ROW_COUNT;
  free := free - leased;
  RETURN QUERY SELECT * FROM lease_lane(0::smallint, p_owner, free, p_lease, tenants);
  GET DIAGNOSTICS leased = ROW_COUNT;
  free := free - leased;
  RETURN QUERY SELECT * FROM lease_lane(1::smallint, p_owner, free, p_lease, tenants);
END $$;

ALTER FUNCTION annals.lease_outbox(p_owner text, p_limit integer, p_lease interval) OWNER TO annals_owner;

CREATE FUNCTION annals.claim_outbox(p_owner text, p_limit integer, p_lease interval) RETURNS TABLE(tenant_id uuid, kind text, key uuid, conversation_id uuid, generation bigint, attempts integer)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 SELECT l.tenant_id,
     l.kind,
     l.key,
     l.conversation_id,
     l.generation,
     l.attempts
    FROM annals.lease_outbox(claim_outbox.p_owner, claim_outbox.p_limit, claim_outbox.p_lease) l(tenant_id, kind, key, conversation_id, generation, attempts, priority);
END;

ALTER FUNCTION annals.claim_outbox(p_owner text, p_limit integer, p_lease interval) OWNER TO annals_owner;

CREATE FUNCTION annals.current_tenant() RETURNS uuid
    LANGUAGE sql STABLE PARALLEL SAFE
    RETURN (NULLIF(current_setting('annals.tenant_id'::text, true), ''::text))::uuid;

ALTER FUNCTION annals.current_tenant() OWNER TO annals_owner;

CREATE TABLE annals.observations (
    tenant_id uuid NOT NULL,
    event_id uuid NOT NULL,
    version integer NOT NULL,
    conversation_id uuid NOT NULL,
    kind text NOT NULL,
    idempotency_key text,
    payload_hash bytea NOT NULL,
    created_at timestamp with time zone NOT NULL,
    api_key_id uuid,
    user_id text,
    session_id text,
    xid xid8 DEFAULT pg_current_xact_id(),
    CONSTRAINT observations_kind_check CHECK ((kind = ANY (ARRAY['store'::text, 'edit'::text, 'revert'::text, 'delete'::text, 'restore'::text])))
);

ALTER TABLE ONLY annals.observations FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.observations OWNER TO annals_owner;

CREATE FUNCTION annals.erase_observations(p_event_ids uuid[]) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 WITH erased AS (
          DELETE FROM annals.observations
           WHERE ((observations.tenant_id = annals.current_tenant()) AND (observations.event_id = ANY (erase_observations.p_event_ids)))
           RETURNING 1 AS "?column?"
         )
  SELECT count(*) AS count
    FROM erased;
END;

ALTER FUNCTION annals.erase_observations(p_event_ids uuid[]) OWNER TO annals_owner;

CREATE FUNCTION annals.forget_observer(p_user_id text, p_session_ids text[]) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 WITH forgotten AS (
          UPDATE annals.observations SET user_id = NULL::text, session_id = NULL::text
           WHERE ((observations.tenant_id = annals.current_tenant()) AND ((observations.user_id = forget_observer.p_user_id) OR (observations.session_id = ANY (forget_observer.p_session_ids))))
           RETURNING 1 AS "?column?"
         )
  SELECT count(*) AS count
    FROM forgotten;
END;

ALTER FUNCTION annals.forget_observer(p_user_id text, p_session_ids text[]) OWNER TO annals_owner;

CREATE FUNCTION annals.forked_event_id(p_conversation uuid, p_event uuid) RETURNS uuid
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
    RETURN (OVERLAY(OVERLAY(encode(substr(sha256((uuid_send(p_conversation) || uuid_send(p_event))), 1, 16), 'hex'::text) PLACING '8'::text FROM 13) PLACING '8'::text FROM 17))::uuid;

ALTER FUNCTION annals.forked_event_id(p_conversation uuid, p_event uuid) OWNER TO annals_owner;

CREATE TABLE annals.jobs (
    tenant_id uuid NOT NULL,
    subject uuid NOT NULL,
    kind text NOT NULL,
    generation bigint DEFAULT 1 NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    enqueued_at timestamp with time zone DEFAULT now() NOT NULL,
    available_at timestamp with time zone DEFAULT now() NOT NULL,
    lease_owner text,
    lease_hash bytea,
    leased_until timestamp with time zone,
    parked_at timestamp with time zone,
    last_error text,
    CONSTRAINT jobs_kind_check CHECK ((kind = ANY (ARRAY['topics'::text, 'summaries'::text])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02');

ALTER TABLE ONLY annals.jobs FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.jobs OWNER TO annals_owner;

CREATE FUNCTION annals.job_totals() RETURNS TABLE(kind text, pending bigint, parked bigint, lag_seconds double precision)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 SELECT j.kind,
     count(*) FILTER (WHERE (j.parked_at IS NULL)) AS count,
     count(*) FILTER (WHERE (j.parked_at IS NOT NULL)) AS count,
     COALESCE(EXTRACT(epoch FROM (clock_timestamp() - min(j.enqueued_at) FILTER (WHERE (j.parked_at IS NULL)))), (0)::numeric) AS "coalesce"
    FROM annals.jobs j
   GROUP BY j.kind;
END;

ALTER FUNCTION annals.job_totals() OWNER TO annals_owner;

CREATE FUNCTION annals.lease_jobs(p_owner text, p_kinds text[], p_limit integer, p_lease interval, p_max_attempts integer) RETURNS TABLE(tenant_id uuid, subject uuid, kind text, generation bigint, attempts integer, leased_until timestamp with time zone, secret bytea)
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    BEGIN ATOMIC
 WITH RECURSIVE waiting(tenant_id) AS (
         ( SELECT f.tenant_id
            FROM annals.jobs f
           WHERE (f.parked_at IS NULL)
           ORDER BY f.tenant_id
          LIMIT 1)
         UNION ALL
          SELECT ( SELECT n.tenant_id
                    FROM annals.jobs n
                   WHERE ((n.parked_at IS NULL) AND (n.tenant_id > w.tenant_id))
                   ORDER BY n.tenant_id
                  LIMIT 1) AS tenant_id
            FROM waiting w
           WHERE (w.tenant_id IS NOT NULL)
         ), served AS MATERIALIZED (
          SELECT w.tenant_id
            FROM waiting w
           WHERE ((w.tenant_id IS NOT NULL) AND (EXISTS ( SELECT
                    FROM annals.jobs d
                   WHERE ((d.parked_at IS NULL) AND (d.tenant_id = w.tenant_id) AND (d.kind = ANY (lease_jobs.p_kinds)) AND (d.available_at <= clock_timestamp()) AND ((d.leased_until IS NULL) OR (d.leased_until <= clock_timestamp()))))))
           ORDER BY (random())
          LIMIT lease_jobs.p_limit
         ), part AS MATERIALIZED (
          SELECT (GREATEST((1)::bigint, (lease_jobs.p_limit / GREATEST((1)::bigint, count(*)))))::integer AS jobs
            FROM served
         ), due AS MATERIALIZED (
          SELECT d.tenant_id,
             d.subject,
             d.kind,
             (d.attempts >= lease_jobs.p_max_attempts) AS is_over,
             (uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())) AS secret
            FROM (served s
              CROSS JOIN LATERAL ( SELECT c.tenant_id,
                     c.subject,
                     c.kind,
                     c.attempts
                    FROM annals.jobs c
                   WHERE ((c.parked_at IS NULL) AND (c.tenant_id = s.tenant_id) AND (c.kind = ANY (lease_jobs.p_kinds)) AND (c.available_at <= clock_timestamp()) AND ((c.leased_until IS NULL) OR (c.leased_until <= clock_timestamp())))
                   ORDER BY c.available_at
                  LIMIT ( SELECT part.jobs
                            FROM part)
                  FOR UPDATE OF c SKIP LOCKED) d)
          LIMIT lease_jobs.p_limit
         ), leased AS (
          UPDATE annals.jobs j SET attempts =
                 CASE
                     WHEN due.is_over THEN j.attempts
                     ELSE (j.attempts + 1)
                 END, lease_owner =
                 CASE
                     WHEN due.is_over THEN NULL::text
                     ELSE lease_jobs.p_owner
                 END, lease_hash =
                 CASE
                     WHEN due.is_over THEN NULL::bytea
                     ELSE sha256(due.secret)
                 END, leased_until =
                 CASE
                     WHEN due.is_over THEN NULL::timestamp with time zone
                     ELSE (clock_timestamp() + lease_jobs.p_lease)
                 END, parked_at =
                 CASE
                     WHEN due.is_over THEN clock_timestamp()
                     ELSE NULL::timestamp with time zone
                 END, last_error =
                 CASE
                     WHEN due.is_over THEN 'the worker ended without a word'::text
                     ELSE j.last_error
                 END
            FROM due
           WHERE ((j.tenant_id = due.tenant_id) AND (j.subject = due.subject) AND (j.kind = due.kind))
           RETURNING j.tenant_id,
             j.subject,
             j.kind,
             j.generation,
             j.attempts,
             j.leased_until,
             due.secret,
             j.parked_at
         )
  SELECT l.tenant_id,
     l.subject,
     l.kind,
     l.generation,
     l.attempts,
     l.leased_until,
     l.secret
    FROM leased l
   WHERE (l.parked_at IS NULL);
END;

ALTER FUNCTION annals.lease_jobs(p_owner text, p_kinds text[], p_limit integer, p_lease interval, p_max_attempts integer) OWNER TO annals_owner;

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
    held_generation bigint,
    priority smallint DEFAULT 0 NOT NULL,
    CONSTRAINT outbox_kind_check CHECK ((kind = ANY (ARRAY['event'::text, 'conversation'::text, 'memory'::text]))),
    CONSTRAINT outbox_priority_check CHECK ((priority = ANY (ARRAY[0, 1])))
)
WITH (fillfactor='70', autovacuum_vacuum_scale_factor='0.02');

ALTER TABLE ONLY annals.outbox FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.outbox OWNER TO annals_owner;

CREATE FUNCTION annals.lease_lane(p_lane smallint, p_owner text, p_limit integer, p_lease interval, p_tenants integer) RETURNS TABLE(tenant_id uuid, kind text, key uuid, conversation_id uuid, generation bigint, attempts integer, priority smallint)
    LANGUAGE sql
    SET search_path TO 'annals', 'pg_temp'
    SET enable_hashjoin TO 'off'
    SET enable_mergejoin TO 'off'
    SET enable_seqscan TO 'off'
    BEGIN ATOMIC
 WITH RECURSIVE waiting(tenant_id) AS (
         ( SELECT f.tenant_id
            FROM annals.outbox f
           WHERE ((f.parked_at IS NULL) AND (f.priority = lease_lane.p_lane))
           ORDER BY f.tenant_id
          LIMIT 1)
         UNION ALL
          SELECT ( SELECT n.tenant_id
                    FROM annals.outbox n
                   WHERE ((n.parked_at IS NULL) AND (n.priority = lease_lane.p_lane) AND (n.tenant_id > w.tenant_id))
                   ORDER BY n.tenant_id
                  LIMIT 1) AS tenant_id
            FROM waiting w
           WHERE (w.tenant_id IS NOT NULL)
         ), served AS MATERIALIZED (
          SELECT w.tenant_id
            FROM waiting w
           WHERE ((w.tenant_id IS NOT NULL) AND (EXISTS ( SELECT
                    FROM annals.outbox d
                   WHERE ((d.parked_at IS NULL) AND (d.priority = lease_lane.p_lane) AND (d.tenant_id = w.tenant_id) AND (d.available_at <= clock_timestamp())))))
           ORDER BY (random())
          LIMIT lease_lane.p_tenants
         ), part AS MATERIALIZED (
          SELECT (GREATEST((1)::bigint, (lease_lane.p_limit / GREATEST((1)::bigint, count(*)))))::integer AS keys
            FROM served
         ), due AS MATERIALIZED (
          SELECT d.tenant_id,
             d.kind,
             d.key
            FROM (served s
              CROSS JOIN LATERAL ( SELECT c.tenant_id,
                     c.kind,
                     c.key
                    FROM annals.outbox c
                   WHERE ((c.parked_at IS NULL) AND (c.priority = lease_lane.p_lane) AND (c.tenant_id = s.tenant_id) AND (c.available_at <= clock_timestamp()))
                   ORDER BY c.available_at
                  LIMIT ( SELECT part.keys
                            FROM part)
                  FOR UPDATE OF c SKIP LOCKED) d)
          LIMIT lease_lane.p_limit
         )
  UPDATE annals.outbox o SET available_at = (clock_timestamp() + lease_lane.p_lease), lease_owner = lease_lane.p_owner, attempts = (o.attempts + 1)
    FROM due
   WHERE ((o.tenant_id = due.tenant_id) AND (o.kind = due.kind) AND (o.key = due.key))
   RETURNING o.tenant_id,
     o.kind,
     o.key,
     o.conversation_id,
     o.generation,
     o.attempts,
     o.priority;
END;

ALTER FUNCTION annals.lease_lane(p_lane smallint, p_owner text, p_limit integer, p_lease interval, p_tenants integer) OWNER TO annals_owner;

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
    embedding_model text NOT NULL,
    token_signs bytea,
    terms integer[],
    term_weights bytea
);
ALTER TABLE ONLY annals.chunks ALTER COLUMN token_signs SET STORAGE EXTERNAL;

ALTER TABLE ONLY annals.chunks FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.chunks OWNER TO annals_owner;

CREATE FUNCTION annals.lexical_chunks(p_terms integer[], p_conversations uuid[], p_max integer) RETURNS TABLE(chunk_id uuid, event_id uuid, chunk_index integer, score double precision)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 WITH size AS MATERIALIZED (
          SELECT count(*) AS rows
            FROM ( SELECT
                    FROM annals.chunks c
                   WHERE (c.tenant_id = annals.current_tenant())
                  LIMIT 100000) few
         ), sampled AS MATERIALIZED (
          SELECT t.term,
             count(*) AS rows
            FROM ((( SELECT c_1.terms
                    FROM annals.chunks c_1
                   WHERE (c_1.tenant_id = annals.current_tenant())
                   ORDER BY c_1.chunk_id
                  LIMIT 1000) c
              CROSS JOIN LATERAL unnest(c.terms) own(term))
              JOIN unnest(lexical_chunks.p_terms) t(term) USING (term))
           GROUP BY t.term
         ), counted AS MATERIALIZED (
          SELECT t.term,
             GREATEST(f_1.rows, ((COALESCE(s_1.rows, (0)::bigint) * n.rows) / LEAST(n.rows, (1000)::bigint))) AS rows
            FROM (((unnest(lexical_chunks.p_terms) t(term)
              CROSS JOIN size n)
              LEFT JOIN sampled s_1 USING (term))
              CROSS JOIN LATERAL ( SELECT count(*) AS rows
                    FROM ( SELECT
                            FROM annals.chunks c
                           WHERE ((c.tenant_id = annals.current_tenant()) AND (c.terms @> ARRAY[t.term]) AND (COALESCE(s_1.rows, (0)::bigint) < 10))
                          LIMIT 1000) few) f_1)
           WHERE (n.rows > 0)
         ), asked AS MATERIALIZED (
          SELECT c.term,
             c.rows,
             ln(((1)::numeric + (((GREATEST((n.rows - c.rows), (0)::bigint))::numeric + 0.5) / ((c.rows)::numeric + 0.5)))) AS idf,
             sum(c.rows) OVER (ORDER BY c.rows, c.term) AS rows_so_far
            FROM (counted c
              CROSS JOIN size n)
           WHERE (c.rows > 0)
         ), leads AS MATERIALIZED (
          SELECT array_agg(a.term) AS terms
            FROM asked a
           WHERE ((lexical_chunks.p_conversations IS NOT NULL) OR (a.rows_so_far <= (lexical_chunks.p_max)::numeric) OR (a.rows_so_far = (a.rows)::numeric))
         ), found AS (
         ( SELECT c.chunk_id,
             c.event_id,
             c.chunk_index,
             c.terms,
             c.term_weights
            FROM annals.chunks c
           WHERE ((lexical_chunks.p_conversations IS NULL) AND (c.tenant_id = annals.current_tenant()) AND (c.terms && ( SELECT l.terms
                    FROM leads l)))
          LIMIT lexical_chunks.p_max)
         UNION ALL
         ( SELECT c.chunk_id,
             c.event_id,
             c.chunk_index,
             c.terms,
             c.term_weights
            FROM annals.chunks c
           WHERE ((c.tenant_id = annals.current_tenant()) AND (c.conversation_id = ANY (lexical_chunks.p_conversations)) AND (c.terms && ( SELECT l.terms
                    FROM leads l)))
          LIMIT lexical_chunks.p_max)
         )
  SELECT f.chunk_id,
     f.event_id,
     f.chunk_index,
     s.score
    FROM (found f
      CROSS JOIN LATERAL ( SELECT sum(((a.idf * (get_byte(f.term_weights, (array_position(f.terms, a.term) - 1)))::numeric) / (100)::numeric)) AS sum
            FROM asked a
           WHERE (a.term = ANY (f.terms))) s(score))
   ORDER BY s.score DESC, f.chunk_id DESC;
END;

ALTER FUNCTION annals.lexical_chunks(p_terms integer[], p_conversations uuid[], p_max integer) OWNER TO annals_owner;

CREATE TABLE annals.memories (
    tenant_id uuid NOT NULL,
    memory_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    content text NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    embedding bytea,
    embedding_model text,
    caller_embedding boolean DEFAULT false NOT NULL,
    idempotency_key text,
    payload_hash bytea NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    terms integer[],
    term_weights bytea,
    other_embedding bytea,
    other_embedding_model text,
    other_embedding_version integer
);

ALTER TABLE ONLY annals.memories FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.memories OWNER TO annals_owner;

CREATE FUNCTION annals.lexical_memories(p_terms integer[], p_conversations uuid[], p_max integer) RETURNS TABLE(memory_id uuid, score double precision)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 WITH size AS MATERIALIZED (
          SELECT count(*) AS rows
            FROM ( SELECT
                    FROM annals.memories c
                   WHERE (c.tenant_id = annals.current_tenant())
                  LIMIT 100000) few
         ), sampled AS MATERIALIZED (
          SELECT t.term,
             count(*) AS rows
            FROM ((( SELECT c_1.terms
                    FROM annals.memories c_1
                   WHERE (c_1.tenant_id = annals.current_tenant())
                   ORDER BY c_1.memory_id
                  LIMIT 1000) c
              CROSS JOIN LATERAL unnest(c.terms) own(term))
              JOIN unnest(lexical_memories.p_terms) t(term) USING (term))
           GROUP BY t.term
         ), counted AS MATERIALIZED (
          SELECT t.term,
             GREATEST(f_1.rows, ((COALESCE(s_1.rows, (0)::bigint) * n.rows) / LEAST(n.rows, (1000)::bigint))) AS rows
            FROM (((unnest(lexical_memories.p_terms) t(term)
              CROSS JOIN size n)
              LEFT JOIN sampled s_1 USING (term))
              CROSS JOIN LATERAL ( SELECT count(*) AS rows
                    FROM ( SELECT
                            FROM annals.memories c
                           WHERE ((c.tenant_id = annals.current_tenant()) AND (c.terms @> ARRAY[t.term]) AND (COALESCE(s_1.rows, (0)::bigint) < 10))
                          LIMIT 1000) few) f_1)
           WHERE (n.rows > 0)
         ), asked AS MATERIALIZED (
          SELECT c.term,
             c.rows,
             ln(((1)::numeric + (((GREATEST((n.rows - c.rows), (0)::bigint))::numeric + 0.5) / ((c.rows)::numeric + 0.5)))) AS idf,
             sum(c.rows) OVER (ORDER BY c.rows, c.term) AS rows_so_far
            FROM (counted c
              CROSS JOIN size n)
           WHERE (c.rows > 0)
         ), leads AS MATERIALIZED (
          SELECT array_agg(a.term) AS terms
            FROM asked a
           WHERE ((lexical_memories.p_conversations IS NOT NULL) OR (a.rows_so_far <= (lexical_memories.p_max)::numeric) OR (a.rows_so_far = (a.rows)::numeric))
         ), found AS (
         ( SELECT c.memory_id,
             c.terms,
             c.term_weights
            FROM annals.memories c
           WHERE ((lexical_memories.p_conversations IS NULL) AND (c.tenant_id = annals.current_tenant()) AND (c.terms && ( SELECT l.terms
                    FROM leads l)))
          LIMIT lexical_memories.p_max)
         UNION ALL
         ( SELECT c.memory_id,
             c.terms,
             c.term_weights
            FROM annals.memories c
           WHERE ((c.tenant_id = annals.current_tenant()) AND (c.conversation_id = ANY (lexical_memories.p_conversations)) AND (c.terms && ( SELECT l.terms
                    FROM leads l)))
          LIMIT lexical_memories.p_max)
         )
  SELECT f.memory_id,
     s.score
    FROM (found f
      CROSS JOIN LATERAL ( SELECT sum(((a.idf * (get_byte(f.term_weights, (array_position(f.terms, a.term) - 1)))::numeric) / (100)::numeric)) AS sum
            FROM asked a
           WHERE (a.term = ANY (f.terms))) s(score))
   ORDER BY s.score DESC, f.memory_id DESC;
END;

ALTER FUNCTION annals.lexical_memories(p_terms integer[], p_conversations uuid[], p_max integer) OWNER TO annals_owner;

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

CREATE FUNCTION annals.outbox_lanes() RETURNS TABLE(priority smallint, pending bigint, parked bigint, lag_seconds double precision)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 SELECT (lane.lane)::smallint AS lane,
     count(o.key) FILTER (WHERE (o.parked_at IS NULL)) AS count,
     count(o.key) FILTER (WHERE (o.parked_at IS NOT NULL)) AS count,
     COALESCE(EXTRACT(epoch FROM (clock_timestamp() - min(o.enqueued_at) FILTER (WHERE (o.parked_at IS NULL)))), (0)::numeric) AS "coalesce"
    FROM (generate_series(0, 1) lane(lane)
      LEFT JOIN annals.outbox o ON ((o.priority = lane.lane)))
   GROUP BY lane.lane
   ORDER BY ((lane.lane)::smallint);
END;

ALTER FUNCTION annals.outbox_lanes() OWNER TO annals_owner;

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

CREATE FUNCTION annals.outbox_waiting(p_until timestamp with time zone) RETURNS bigint
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'annals', 'pg_temp'
    BEGIN ATOMIC
 SELECT count(*) AS count
    FROM annals.outbox
   WHERE ((outbox.parked_at IS NULL) AND (outbox.enqueued_at <= outbox_waiting.p_until));
END;

ALTER FUNCTION annals.outbox_waiting(p_until timestamp with time zone) OWNER TO annals_owner;

CREATE FUNCTION annals.outdate_summaries() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO 'annals', 'pg_temp'
    AS $$
BEGIN
  UPDATE summaries SET stale_at = clock_timestamp()
  WHERE tenant_id = NEW.tenant_id AND conversation_id = NEW.conversation_id
    AND first_seq <= NEW.seq AND last_seq >= NEW.seq AND stale_at IS NULL;
  RETURN NULL;
END $$;

ALTER FUNCTION annals.outdate_summaries() OWNER TO annals_owner;

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
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    end_user_mode text DEFAULT 'trusted'::text NOT NULL,
    context_injection jsonb DEFAULT '{}'::jsonb NOT NULL,
    provider_logs_enabled boolean DEFAULT false NOT NULL,
    CONSTRAINT agents_end_user_mode_check CHECK ((end_user_mode = ANY (ARRAY['anonymous'::text, 'trusted'::text, 'signed'::text])))
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
    revoked_at timestamp with time zone,
    kind text DEFAULT 'secret'::text NOT NULL,
    agent_id uuid,
    CONSTRAINT api_keys_agent CHECK (((kind = 'publishable'::text) = (agent_id IS NOT NULL))),
    CONSTRAINT api_keys_kind_check CHECK ((kind = ANY (ARRAY['secret'::text, 'publishable'::text])))
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

CREATE TABLE annals.attachments (
    tenant_id uuid NOT NULL,
    attachment_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    uri text NOT NULL,
    media_type text DEFAULT ''::text NOT NULL,
    file_name text DEFAULT ''::text NOT NULL,
    size_bytes bigint DEFAULT 0 NOT NULL,
    sha256 text DEFAULT ''::text NOT NULL,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY annals.attachments FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.attachments OWNER TO annals_owner;

CREATE TABLE annals.cold_segments (
    tenant_id uuid NOT NULL,
    segment_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    event_count bigint NOT NULL,
    path text NOT NULL,
    sha256 bytea NOT NULL,
    stored_bytes bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY annals.cold_segments FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.cold_segments OWNER TO annals_owner;

CREATE UNLOGGED TABLE annals.context_cache (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    request_digest bytea NOT NULL,
    state bytea NOT NULL,
    context_version text NOT NULL,
    body bytea NOT NULL,
    body_bytes integer NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamp with time zone NOT NULL,
    CONSTRAINT context_cache_body_bytes_check CHECK ((body_bytes > 0)),
    CONSTRAINT context_cache_context_version_check CHECK (((char_length(context_version) >= 1) AND (char_length(context_version) <= 64))),
    CONSTRAINT context_cache_request_digest_check CHECK ((octet_length(request_digest) = 32)),
    CONSTRAINT context_cache_state_check CHECK ((octet_length(state) = 32))
);
ALTER TABLE ONLY annals.context_cache ALTER COLUMN body SET STORAGE EXTERNAL;

ALTER TABLE ONLY annals.context_cache FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.context_cache OWNER TO annals_owner;

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
    host_id text,
    org_id text,
    provider_conversation_id text DEFAULT ''::text NOT NULL,
    last_response_id text DEFAULT ''::text NOT NULL,
    current_branch integer DEFAULT 1 NOT NULL,
    branch_count integer DEFAULT 1 NOT NULL,
    memory_count bigint DEFAULT 0 NOT NULL,
    forked_from_conversation_id uuid,
    forked_from_event_id uuid,
    forked_from_seq bigint,
    archived_at timestamp with time zone,
    cold_until_seq bigint DEFAULT 0 NOT NULL,
    CONSTRAINT conversations_one_owner CHECK (((user_id IS NULL) OR (session_id IS NULL))),
    CONSTRAINT conversations_status_check CHECK ((status = ANY (ARRAY['active'::text, 'completed'::text, 'archived'::text])))
)
WITH (fillfactor='80');

ALTER TABLE ONLY annals.conversations FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.conversations OWNER TO annals_owner;

CREATE TABLE annals.erasure_receipts (
    tenant_id uuid NOT NULL,
    receipt_id uuid NOT NULL,
    scope text NOT NULL,
    subject text NOT NULL,
    counts jsonb NOT NULL,
    started_at timestamp with time zone NOT NULL,
    completed_at timestamp with time zone,
    digest text DEFAULT ''::text NOT NULL,
    CONSTRAINT erasure_receipts_scope_check CHECK ((scope = ANY (ARRAY['event'::text, 'conversation'::text, 'user'::text, 'tenant'::text])))
);

ALTER TABLE ONLY annals.erasure_receipts FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.erasure_receipts OWNER TO annals_owner;

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
    branch integer DEFAULT 1 NOT NULL,
    turn_id text,
    status text DEFAULT 'complete'::text NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    edited_at timestamp with time zone,
    deleted_at timestamp with time zone,
    erased_at timestamp with time zone,
    superseded_by uuid,
    origin_event_id uuid,
    cold_segment_id uuid,
    CONSTRAINT events_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text, 'system'::text, 'tool'::text]))),
    CONSTRAINT events_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'complete'::text, 'failed'::text, 'incomplete'::text]))),
    CONSTRAINT events_type_check CHECK ((type = ANY (ARRAY['message'::text, 'tool_call'::text, 'tool_result'::text, 'system'::text, 'error'::text])))
);

ALTER TABLE ONLY annals.events FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.events OWNER TO annals_owner;

CREATE TABLE annals.fork_requests (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    request_id uuid NOT NULL,
    request_hash bytea NOT NULL,
    new_conversation_id uuid NOT NULL
);

ALTER TABLE ONLY annals.fork_requests FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.fork_requests OWNER TO annals_owner;

CREATE TABLE annals.observation_payloads (
    tenant_id uuid NOT NULL,
    event_id uuid NOT NULL,
    version integer NOT NULL,
    payload jsonb NOT NULL,
    payload_bytes integer GENERATED ALWAYS AS (octet_length((payload)::text)) STORED NOT NULL
);

ALTER TABLE ONLY annals.observation_payloads FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.observation_payloads OWNER TO annals_owner;

CREATE TABLE annals.provider_logs (
    tenant_id uuid NOT NULL,
    provider_log_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    provider text NOT NULL,
    model text DEFAULT ''::text NOT NULL,
    request_json text NOT NULL,
    response_json text NOT NULL,
    latency_ms bigint NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone NOT NULL
);

ALTER TABLE ONLY annals.provider_logs FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.provider_logs OWNER TO annals_owner;

CREATE TABLE annals.relationships (
    tenant_id uuid NOT NULL,
    relationship_id uuid NOT NULL,
    type text NOT NULL,
    source_kind text NOT NULL,
    source_id text NOT NULL,
    target_kind text NOT NULL,
    target_id text NOT NULL,
    score double precision,
    metadata jsonb DEFAULT '{}'::jsonb NOT NULL,
    source_conversation_id uuid,
    target_conversation_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    source_key text GENERATED ALWAYS AS (md5(source_id)) STORED NOT NULL,
    target_key text GENERATED ALWAYS AS (md5(target_id)) STORED NOT NULL,
    CONSTRAINT relationships_score_check CHECK (((score >= (0)::double precision) AND (score <= (1)::double precision)))
);

ALTER TABLE ONLY annals.relationships FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.relationships OWNER TO annals_owner;

CREATE TABLE annals.retention_policies (
    tenant_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    archive_after_days integer,
    cold_after_days integer,
    erase_after_days integer,
    erase_deleted_after_days integer,
    provider_log_days integer,
    search_log_days integer,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT retention_policies_archive_after_days_check CHECK ((archive_after_days > 0)),
    CONSTRAINT retention_policies_cold_after_days_check CHECK ((cold_after_days > 0)),
    CONSTRAINT retention_policies_erase_after_days_check CHECK ((erase_after_days > 0)),
    CONSTRAINT retention_policies_erase_deleted_after_days_check CHECK ((erase_deleted_after_days > 0)),
    CONSTRAINT retention_policies_provider_log_days_check CHECK ((provider_log_days > 0)),
    CONSTRAINT retention_policies_search_log_days_check CHECK ((search_log_days > 0))
);

ALTER TABLE ONLY annals.retention_policies FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.retention_policies OWNER TO annals_owner;

CREATE TABLE annals.search_log (
    tenant_id uuid NOT NULL,
    search_id uuid NOT NULL,
    kind text NOT NULL,
    query text NOT NULL,
    conversation_id uuid,
    hit_count integer NOT NULL,
    top_score double precision NOT NULL,
    search_time_ms double precision NOT NULL,
    api_key_id uuid,
    user_id text,
    session_id text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT search_log_kind_check CHECK ((kind = ANY (ARRAY['events'::text, 'memories'::text])))
);

ALTER TABLE ONLY annals.search_log FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.search_log OWNER TO annals_owner;

CREATE TABLE annals.search_parameters (
    tenant_id uuid NOT NULL,
    overrides jsonb NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT search_parameters_overrides_check CHECK ((jsonb_typeof(overrides) = 'object'::text))
);

ALTER TABLE ONLY annals.search_parameters FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.search_parameters OWNER TO annals_owner;

CREATE TABLE annals.session_merges (
    tenant_id uuid NOT NULL,
    session_id text NOT NULL,
    user_id text NOT NULL,
    moved_count bigint NOT NULL,
    api_key_id uuid,
    merged_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY annals.session_merges FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.session_merges OWNER TO annals_owner;

CREATE TABLE annals.signing_keys (
    tenant_id uuid NOT NULL,
    signing_key_id uuid NOT NULL,
    display_name text NOT NULL,
    algorithm text NOT NULL,
    public_key_pem text,
    encrypted_secret bytea,
    issuer text NOT NULL,
    audience text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    expires_at timestamp with time zone,
    revoked_at timestamp with time zone,
    CONSTRAINT signing_keys_algorithm_check CHECK ((algorithm = ANY (ARRAY['HS256'::text, 'RS256'::text, 'ES256'::text, 'EdDSA'::text]))),
    CONSTRAINT signing_keys_check CHECK (((algorithm = 'HS256'::text) = (encrypted_secret IS NOT NULL))),
    CONSTRAINT signing_keys_check1 CHECK (((algorithm = 'HS256'::text) = (public_key_pem IS NULL)))
);

ALTER TABLE ONLY annals.signing_keys FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.signing_keys OWNER TO annals_owner;

CREATE TABLE annals.summaries (
    tenant_id uuid NOT NULL,
    summary_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    branch integer NOT NULL,
    height smallint NOT NULL,
    level text NOT NULL,
    first_seq bigint NOT NULL,
    last_seq bigint NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    body text NOT NULL,
    token_count integer NOT NULL,
    quality_score double precision NOT NULL,
    citations jsonb NOT NULL,
    source_version text NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    created_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    stale_at timestamp with time zone,
    CONSTRAINT summaries_branch_check CHECK ((branch > 0)),
    CONSTRAINT summaries_check CHECK ((last_seq >= first_seq)),
    CONSTRAINT summaries_first_seq_check CHECK ((first_seq > 0)),
    CONSTRAINT summaries_height_check CHECK (((height >= 0) AND (height <= 9))),
    CONSTRAINT summaries_level_check CHECK ((level = ANY (ARRAY['brief'::text, 'standard'::text, 'detailed'::text]))),
    CONSTRAINT summaries_quality_score_check CHECK (((quality_score >= (0)::double precision) AND (quality_score <= (1)::double precision))),
    CONSTRAINT summaries_token_count_check CHECK ((token_count >= 0))
);

ALTER TABLE ONLY annals.summaries FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.summaries OWNER TO annals_owner;

CREATE TABLE annals.summary_runs (
    tenant_id uuid NOT NULL,
    run_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    provider text NOT NULL,
    model text NOT NULL,
    status text NOT NULL,
    summary_count integer NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cost_micros bigint NOT NULL,
    error text DEFAULT ''::text NOT NULL,
    started_at timestamp with time zone NOT NULL,
    ended_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT summary_runs_cost_micros_check CHECK ((cost_micros >= 0)),
    CONSTRAINT summary_runs_input_tokens_check CHECK ((input_tokens >= 0)),
    CONSTRAINT summary_runs_output_tokens_check CHECK ((output_tokens >= 0)),
    CONSTRAINT summary_runs_status_check CHECK ((status = ANY (ARRAY['completed'::text, 'failed'::text])))
);

ALTER TABLE ONLY annals.summary_runs FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.summary_runs OWNER TO annals_owner;

CREATE TABLE annals.topic_days (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    day date NOT NULL,
    topic_id uuid NOT NULL,
    event_count bigint NOT NULL
);

ALTER TABLE ONLY annals.topic_days FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.topic_days OWNER TO annals_owner;

CREATE TABLE annals.topic_members (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    seq bigint NOT NULL,
    topic_id uuid,
    branch integer NOT NULL,
    event_version integer NOT NULL,
    event_time timestamp with time zone NOT NULL
);

ALTER TABLE ONLY annals.topic_members FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.topic_members OWNER TO annals_owner;

CREATE TABLE annals.topic_runs (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    branch integer NOT NULL,
    event_count bigint NOT NULL,
    embedding_model text NOT NULL,
    parameters text NOT NULL,
    clustered_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY annals.topic_runs FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.topic_runs OWNER TO annals_owner;

CREATE TABLE annals.topics (
    tenant_id uuid NOT NULL,
    topic_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    label text DEFAULT ''::text NOT NULL,
    summary jsonb DEFAULT '[]'::jsonb NOT NULL,
    samples jsonb DEFAULT '[]'::jsonb NOT NULL,
    centroid bytea NOT NULL,
    embedding_model text NOT NULL,
    event_count bigint NOT NULL,
    first_at timestamp with time zone,
    last_at timestamp with time zone,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY annals.topics FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.topics OWNER TO annals_owner;

CREATE TABLE annals.usage_daily (
    tenant_id uuid NOT NULL,
    conversation_id uuid NOT NULL,
    day date NOT NULL,
    model text NOT NULL,
    event_count bigint NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    cached_input_tokens bigint NOT NULL
);

ALTER TABLE ONLY annals.usage_daily FORCE ROW LEVEL SECURITY;

ALTER TABLE annals.usage_daily OWNER TO annals_owner;

ALTER TABLE ONLY annals.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (tenant_id, agent_id);

ALTER TABLE ONLY annals.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (tenant_id, api_key_id);

ALTER TABLE ONLY annals.api_keys
    ADD CONSTRAINT api_keys_tenant_id_key_hash_key UNIQUE (tenant_id, key_hash);

ALTER TABLE ONLY annals.append_requests
    ADD CONSTRAINT append_requests_pkey PRIMARY KEY (tenant_id, conversation_id, request_id);

ALTER TABLE ONLY annals.attachments
    ADD CONSTRAINT attachments_pkey PRIMARY KEY (tenant_id, attachment_id);

ALTER TABLE ONLY annals.branches
    ADD CONSTRAINT branches_pkey PRIMARY KEY (tenant_id, conversation_id, branch);

ALTER TABLE ONLY annals.chunks
    ADD CONSTRAINT chunks_pkey PRIMARY KEY (tenant_id, chunk_id);

ALTER TABLE ONLY annals.cold_segments
    ADD CONSTRAINT cold_segments_pkey PRIMARY KEY (tenant_id, segment_id);

ALTER TABLE ONLY annals.context_cache
    ADD CONSTRAINT context_cache_pkey PRIMARY KEY (tenant_id, conversation_id, request_digest, state);

ALTER TABLE ONLY annals.conversations
    ADD CONSTRAINT conversations_pkey PRIMARY KEY (tenant_id, conversation_id);

ALTER TABLE ONLY annals.erasure_receipts
    ADD CONSTRAINT erasure_receipts_pkey PRIMARY KEY (tenant_id, receipt_id);

ALTER TABLE ONLY annals.events
    ADD CONSTRAINT events_pkey PRIMARY KEY (tenant_id, conversation_id, seq);

ALTER TABLE ONLY annals.events
    ADD CONSTRAINT events_tenant_id_event_id_key UNIQUE (tenant_id, event_id);

ALTER TABLE ONLY annals.fork_requests
    ADD CONSTRAINT fork_requests_pkey PRIMARY KEY (tenant_id, conversation_id, request_id);

ALTER TABLE ONLY annals.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (tenant_id, subject, kind);

ALTER TABLE ONLY annals.memories
    ADD CONSTRAINT memories_pkey PRIMARY KEY (tenant_id, memory_id);

ALTER TABLE ONLY annals.observation_payloads
    ADD CONSTRAINT observation_payloads_pkey PRIMARY KEY (tenant_id, event_id, version);

ALTER TABLE ONLY annals.observations
    ADD CONSTRAINT observations_pkey PRIMARY KEY (tenant_id, event_id, version);

ALTER TABLE ONLY annals.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (tenant_id, kind, key);

ALTER TABLE ONLY annals.provider_logs
    ADD CONSTRAINT provider_logs_pkey PRIMARY KEY (tenant_id, provider_log_id);

ALTER TABLE ONLY annals.relationships
    ADD CONSTRAINT relationships_once UNIQUE (tenant_id, source_kind, source_key, type, target_kind, target_key);

ALTER TABLE ONLY annals.relationships
    ADD CONSTRAINT relationships_pkey PRIMARY KEY (tenant_id, relationship_id);

ALTER TABLE ONLY annals.retention_policies
    ADD CONSTRAINT retention_policies_pkey PRIMARY KEY (tenant_id, agent_id);

ALTER TABLE ONLY annals.search_log
    ADD CONSTRAINT search_log_pkey PRIMARY KEY (tenant_id, search_id);

ALTER TABLE ONLY annals.search_parameters
    ADD CONSTRAINT search_parameters_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY annals.session_merges
    ADD CONSTRAINT session_merges_pkey PRIMARY KEY (tenant_id, session_id);

ALTER TABLE ONLY annals.signing_keys
    ADD CONSTRAINT signing_keys_pkey PRIMARY KEY (tenant_id, signing_key_id);

ALTER TABLE ONLY annals.summaries
    ADD CONSTRAINT summaries_once UNIQUE (tenant_id, conversation_id, branch, provider, height, level, first_seq);

ALTER TABLE ONLY annals.summaries
    ADD CONSTRAINT summaries_pkey PRIMARY KEY (tenant_id, summary_id);

ALTER TABLE ONLY annals.summary_runs
    ADD CONSTRAINT summary_runs_pkey PRIMARY KEY (tenant_id, run_id);

ALTER TABLE ONLY annals.tenants
    ADD CONSTRAINT tenants_pkey PRIMARY KEY (tenant_id);

ALTER TABLE ONLY annals.topic_days
    ADD CONSTRAINT topic_days_pkey PRIMARY KEY (tenant_id, conversation_id, day, topic_id);

ALTER TABLE ONLY annals.topic_members
    ADD CONSTRAINT topic_members_pkey PRIMARY KEY (tenant_id, conversation_id, seq);

ALTER TABLE ONLY annals.topic_runs
    ADD CONSTRAINT topic_runs_pkey PRIMARY KEY (tenant_id, conversation_id);

ALTER TABLE ONLY annals.topics
    ADD CONSTRAINT topics_pkey PRIMARY KEY (tenant_id, topic_id);

ALTER TABLE ONLY annals.usage_daily
    ADD CONSTRAINT usage_daily_pkey PRIMARY KEY (tenant_id, conversation_id, day, model);

CREATE INDEX attachments_by_conversation ON annals.attachments USING btree (tenant_id, conversation_id, created_at);

CREATE UNIQUE INDEX branches_request_id ON annals.branches USING btree (tenant_id, conversation_id, request_id) WHERE (request_id IS NOT NULL);

CREATE INDEX chunks_by_content ON annals.chunks USING btree (tenant_id, content_hash);

CREATE INDEX chunks_by_conversation ON annals.chunks USING btree (tenant_id, conversation_id);

CREATE INDEX chunks_by_event ON annals.chunks USING btree (tenant_id, event_id);

CREATE INDEX chunks_by_terms ON annals.chunks USING gin (terms) WITH (fastupdate=off);

CREATE INDEX cold_segments_by_conversation ON annals.cold_segments USING btree (tenant_id, conversation_id);

CREATE INDEX context_cache_by_age ON annals.context_cache USING btree (tenant_id, created_at) INCLUDE (body_bytes);

CREATE INDEX conversations_by_activity ON annals.conversations USING btree (tenant_id, active_at);

CREATE INDEX conversations_by_agent ON annals.conversations USING btree (tenant_id, agent_id, active_at) WHERE (agent_id IS NOT NULL);

CREATE INDEX conversations_by_org ON annals.conversations USING btree (tenant_id, org_id, active_at) WHERE (org_id IS NOT NULL);

CREATE INDEX conversations_by_session ON annals.conversations USING btree (tenant_id, session_id, active_at) WHERE (session_id IS NOT NULL);

CREATE INDEX conversations_by_user ON annals.conversations USING btree (tenant_id, user_id, active_at) WHERE (user_id IS NOT NULL);

CREATE UNIQUE INDEX conversations_host_id ON annals.conversations USING btree (tenant_id, host_id) WHERE (host_id IS NOT NULL);

CREATE UNIQUE INDEX conversations_request_id ON annals.conversations USING btree (tenant_id, request_id) WHERE (request_id IS NOT NULL);

CREATE INDEX erasure_receipts_by_subject ON annals.erasure_receipts USING btree (tenant_id, scope, subject);

CREATE INDEX erasure_receipts_by_time ON annals.erasure_receipts USING btree (tenant_id, started_at);

CREATE INDEX events_by_branch ON annals.events USING btree (tenant_id, conversation_id, branch, seq);

CREATE INDEX events_by_parent ON annals.events USING btree (tenant_id, conversation_id, parent_event_id) WHERE (parent_event_id IS NOT NULL);

CREATE INDEX events_by_tool_call ON annals.events USING btree (tenant_id, conversation_id, tool_call_id) WHERE (tool_call_id IS NOT NULL);

CREATE UNIQUE INDEX events_by_turn ON annals.events USING btree (tenant_id, conversation_id, turn_id, branch) WHERE (turn_id IS NOT NULL);

CREATE INDEX events_gone ON annals.events USING btree (tenant_id, event_id) WHERE ((deleted_at IS NOT NULL) OR (erased_at IS NOT NULL));

CREATE INDEX jobs_by_turn ON annals.jobs USING btree (tenant_id, available_at) WHERE (parked_at IS NULL);

CREATE INDEX jobs_parked ON annals.jobs USING btree (tenant_id, parked_at, subject) WHERE (parked_at IS NOT NULL);

CREATE INDEX memories_by_conversation ON annals.memories USING btree (tenant_id, conversation_id, created_at);

CREATE INDEX memories_by_terms ON annals.memories USING gin (terms) WITH (fastupdate=off);

CREATE INDEX memories_by_time ON annals.memories USING btree (tenant_id, created_at);

CREATE UNIQUE INDEX memories_idempotency_key ON annals.memories USING btree (tenant_id, conversation_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);

CREATE INDEX observations_by_xid ON annals.observations USING btree (tenant_id, xid) WHERE (version = 1);

CREATE UNIQUE INDEX observations_idempotency_key ON annals.observations USING btree (tenant_id, conversation_id, idempotency_key) WHERE (idempotency_key IS NOT NULL);

CREATE INDEX outbox_by_conversation ON annals.outbox USING btree (tenant_id, conversation_id);

CREATE INDEX outbox_by_turn ON annals.outbox USING btree (priority, tenant_id, available_at) WHERE (parked_at IS NULL);

CREATE INDEX outbox_parked ON annals.outbox USING btree (tenant_id, parked_at, key) WHERE (parked_at IS NOT NULL);

CREATE INDEX provider_logs_by_conversation ON annals.provider_logs USING btree (tenant_id, conversation_id, created_at);

CREATE INDEX provider_logs_by_expiry ON annals.provider_logs USING btree (tenant_id, expires_at);

CREATE INDEX relationships_by_source_conversation ON annals.relationships USING btree (tenant_id, source_conversation_id);

CREATE INDEX relationships_by_target ON annals.relationships USING btree (tenant_id, target_kind, target_key);

CREATE INDEX relationships_by_target_conversation ON annals.relationships USING btree (tenant_id, target_conversation_id);

CREATE INDEX search_log_by_conversation ON annals.search_log USING btree (tenant_id, conversation_id) WHERE (conversation_id IS NOT NULL);

CREATE INDEX search_log_by_time ON annals.search_log USING btree (tenant_id, created_at);

CREATE INDEX search_log_by_user ON annals.search_log USING btree (tenant_id, user_id) WHERE (user_id IS NOT NULL);

CREATE INDEX session_merges_by_user ON annals.session_merges USING btree (tenant_id, user_id);

CREATE INDEX summaries_by_change ON annals.summaries USING btree (tenant_id, conversation_id, GREATEST(created_at, stale_at));

CREATE INDEX summaries_by_range ON annals.summaries USING btree (tenant_id, conversation_id, first_seq, last_seq);

CREATE INDEX summary_runs_by_conversation ON annals.summary_runs USING btree (tenant_id, conversation_id, ended_at, run_id);

CREATE INDEX topic_members_by_topic ON annals.topic_members USING btree (tenant_id, topic_id, seq) WHERE (topic_id IS NOT NULL);

CREATE INDEX topics_by_size ON annals.topics USING btree (tenant_id, conversation_id, event_count);

CREATE INDEX usage_daily_by_day ON annals.usage_daily USING btree (tenant_id, day);

CREATE TRIGGER events_outdate_summaries AFTER UPDATE OF version, erased_at ON annals.events FOR EACH ROW WHEN (((old.version <> new.version) OR (old.erased_at IS DISTINCT FROM new.erased_at))) EXECUTE FUNCTION annals.outdate_summaries();

ALTER TABLE ONLY annals.agents
    ADD CONSTRAINT agents_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE ONLY annals.api_keys
    ADD CONSTRAINT api_keys_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES annals.agents(tenant_id, agent_id);

ALTER TABLE ONLY annals.api_keys
    ADD CONSTRAINT api_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE ONLY annals.attachments
    ADD CONSTRAINT attachments_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES annals.conversations(tenant_id, conversation_id);

ALTER TABLE ONLY annals.context_cache
    ADD CONSTRAINT context_cache_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES annals.conversations(tenant_id, conversation_id);

ALTER TABLE ONLY annals.conversations
    ADD CONSTRAINT conversations_tenant_id_agent_id_fkey FOREIGN KEY (tenant_id, agent_id) REFERENCES annals.agents(tenant_id, agent_id);

ALTER TABLE ONLY annals.conversations
    ADD CONSTRAINT conversations_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE ONLY annals.memories
    ADD CONSTRAINT memories_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES annals.conversations(tenant_id, conversation_id);

ALTER TABLE ONLY annals.retention_policies
    ADD CONSTRAINT retention_policies_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE ONLY annals.search_parameters
    ADD CONSTRAINT search_parameters_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE ONLY annals.session_merges
    ADD CONSTRAINT session_merges_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE ONLY annals.signing_keys
    ADD CONSTRAINT signing_keys_tenant_id_fkey FOREIGN KEY (tenant_id) REFERENCES annals.tenants(tenant_id);

ALTER TABLE ONLY annals.summaries
    ADD CONSTRAINT summaries_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES annals.conversations(tenant_id, conversation_id);

ALTER TABLE ONLY annals.summary_runs
    ADD CONSTRAINT summary_runs_tenant_id_conversation_id_fkey FOREIGN KEY (tenant_id, conversation_id) REFERENCES annals.conversations(tenant_id, conversation_id);

ALTER TABLE annals.agents ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.api_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.append_requests ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.attachments ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.branches ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.chunks ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.cold_segments ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.context_cache ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.conversations ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.erasure_receipts ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.events ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.fork_requests ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.jobs ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.memories ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.observation_payloads ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.observations ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.outbox ENABLE ROW LEVEL SECURITY;

CREATE POLICY owner_erases ON annals.observations TO annals_owner USING ((tenant_id = annals.current_tenant()));

CREATE POLICY owner_functions ON annals.jobs TO annals_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_functions ON annals.outbox TO annals_owner USING (true) WITH CHECK (true);

CREATE POLICY owner_functions ON annals.tenants TO annals_owner USING (true);

CREATE POLICY owner_searches ON annals.chunks FOR SELECT TO annals_owner USING (true);

CREATE POLICY owner_searches ON annals.memories FOR SELECT TO annals_owner USING (true);

ALTER TABLE annals.provider_logs ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.relationships ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.retention_policies ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.search_log ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.search_parameters ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.session_merges ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.signing_keys ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.summaries ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.summary_runs ENABLE ROW LEVEL SECURITY;

CREATE POLICY tenant_isolation ON annals.agents TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.api_keys TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.append_requests TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.attachments TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.branches TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.chunks TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.cold_segments TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.context_cache TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.conversations TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.erasure_receipts TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.events TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.fork_requests TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.jobs TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.memories TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.observation_payloads TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.observations TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.outbox TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.provider_logs TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.relationships TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.retention_policies TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.search_log TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.search_parameters TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.session_merges TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.signing_keys TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.summaries TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.summary_runs TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.tenants TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.topic_days TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.topic_members TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.topic_runs TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.topics TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

CREATE POLICY tenant_isolation ON annals.usage_daily TO annals_app USING ((tenant_id = annals.current_tenant())) WITH CHECK ((tenant_id = annals.current_tenant()));

ALTER TABLE annals.tenants ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.topic_days ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.topic_members ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.topic_runs ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.topics ENABLE ROW LEVEL SECURITY;

ALTER TABLE annals.usage_daily ENABLE ROW LEVEL SECURITY;

GRANT USAGE ON SCHEMA annals TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.branches TO annals_app;

REVOKE ALL ON FUNCTION annals.lease_outbox(p_owner text, p_limit integer, p_lease interval) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.lease_outbox(p_owner text, p_limit integer, p_lease interval) TO annals_app;

REVOKE ALL ON FUNCTION annals.claim_outbox(p_owner text, p_limit integer, p_lease interval) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.claim_outbox(p_owner text, p_limit integer, p_lease interval) TO annals_app;

GRANT SELECT,INSERT ON TABLE annals.observations TO annals_app;

REVOKE ALL ON FUNCTION annals.erase_observations(p_event_ids uuid[]) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.erase_observations(p_event_ids uuid[]) TO annals_app;

REVOKE ALL ON FUNCTION annals.forget_observer(p_user_id text, p_session_ids text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.forget_observer(p_user_id text, p_session_ids text[]) TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.jobs TO annals_app;

REVOKE ALL ON FUNCTION annals.job_totals() FROM PUBLIC;
GRANT ALL ON FUNCTION annals.job_totals() TO annals_app;

REVOKE ALL ON FUNCTION annals.lease_jobs(p_owner text, p_kinds text[], p_limit integer, p_lease interval, p_max_attempts integer) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.lease_jobs(p_owner text, p_kinds text[], p_limit integer, p_lease interval, p_max_attempts integer) TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.outbox TO annals_app;

REVOKE ALL ON FUNCTION annals.lease_lane(p_lane smallint, p_owner text, p_limit integer, p_lease interval, p_tenants integer) FROM PUBLIC;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.chunks TO annals_app;

REVOKE ALL ON FUNCTION annals.lexical_chunks(p_terms integer[], p_conversations uuid[], p_max integer) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.lexical_chunks(p_terms integer[], p_conversations uuid[], p_max integer) TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.memories TO annals_app;

REVOKE ALL ON FUNCTION annals.lexical_memories(p_terms integer[], p_conversations uuid[], p_max integer) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.lexical_memories(p_terms integer[], p_conversations uuid[], p_max integer) TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.tenants TO annals_app;

REVOKE ALL ON FUNCTION annals.list_tenants(p_after timestamp with time zone, p_after_id uuid, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.list_tenants(p_after timestamp with time zone, p_after_id uuid, p_limit integer) TO annals_app;

REVOKE ALL ON FUNCTION annals.outbox_lanes() FROM PUBLIC;
GRANT ALL ON FUNCTION annals.outbox_lanes() TO annals_app;

REVOKE ALL ON FUNCTION annals.outbox_totals(OUT pending bigint, OUT parked bigint, OUT lag_seconds double precision) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.outbox_totals(OUT pending bigint, OUT parked bigint, OUT lag_seconds double precision) TO annals_app;

REVOKE ALL ON FUNCTION annals.outbox_waiting(p_until timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.outbox_waiting(p_until timestamp with time zone) TO annals_app;

REVOKE ALL ON FUNCTION annals.release_outbox(p_owner text) FROM PUBLIC;
GRANT ALL ON FUNCTION annals.release_outbox(p_owner text) TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.agents TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.api_keys TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.append_requests TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.attachments TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.cold_segments TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.context_cache TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.conversations TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.erasure_receipts TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.events TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.fork_requests TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.observation_payloads TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.provider_logs TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.relationships TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.retention_policies TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.search_log TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.search_parameters TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.session_merges TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.signing_keys TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.summaries TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.summary_runs TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.topic_days TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.topic_members TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.topic_runs TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.topics TO annals_app;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE annals.usage_daily TO annals_app;
