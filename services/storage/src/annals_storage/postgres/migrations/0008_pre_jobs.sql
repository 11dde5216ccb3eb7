-- Background work that is due: what to do for which conversation, never what it says. Like the
-- outbox it is level-triggered: who works a job off reads the conversation as it is then.
SET LOCAL search_path = annals;

CREATE TABLE jobs (
  tenant_id    uuid NOT NULL,
  subject      uuid NOT NULL,
  kind         text NOT NULL CHECK (kind IN ('topics', 'summaries')),
  -- Bumped whenever more becomes due: a job that was worked off at an older one stays.
  generation   bigint NOT NULL DEFAULT 1,
  -- Leases since it last succeeded.
  attempts     integer NOT NULL DEFAULT 0,
  enqueued_at  timestamptz NOT NULL DEFAULT now(),
  -- Not handed out before this moment: changes are gathered, failures are paused after.
  available_at timestamptz NOT NULL DEFAULT now(),
  lease_owner  text,
  -- SHA-256 of the secret that the holder of the lease proves itself by (ADR 0013).
  lease_hash   bytea,
  leased_until timestamptz,
  parked_at    timestamptz,
  last_error   text,
  PRIMARY KEY (tenant_id, subject, kind)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX jobs_by_turn ON jobs (tenant_id, available_at) WHERE parked_at IS NULL;
CREATE INDEX jobs_parked ON jobs (tenant_id, parked_at, subject) WHERE parked_at IS NOT NULL;

ALTER TABLE jobs ENABLE ROW LEVEL SECURITY;
ALTER TABLE jobs FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_isolation ON jobs TO annals_app
  USING (tenant_id = annals.current_tenant()) WITH CHECK (tenant_id = annals.current_tenant());
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs TO annals_app;

-- As with the outbox, the owner reads across tenants only inside the functions below.
CREATE POLICY owner_functions ON jobs TO CURRENT_USER USING (true) WITH CHECK (true);

-- Leases up to p_limit due jobs. Tenants with any get an equal part, their oldest ones; which
-- tenants, when there are more of them than jobs to lease, is left to chance, so that all get their
-- turn. They are visited by skipping along the index: see lease_lane in 0006_pre_outbox.sql.
-- A job whose last allowed attempt ended without a word is parked: it may have killed its worker.
CREATE FUNCTION lease_jobs(p_owner text, p_kinds text[], p_limit integer, p_lease interval,
                           p_max_attempts integer)
  RETURNS TABLE (tenant_id uuid, subject uuid, kind text, generation bigint, attempts integer,
                 leased_until timestamptz, secret bytea)
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = annals, pg_temp
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
BEGIN ATOMIC
  WITH RECURSIVE waiting (tenant_id) AS (
    (SELECT f.tenant_id FROM jobs AS f
     WHERE f.parked_at IS NULL ORDER BY f.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT n.tenant_id FROM jobs AS n
            WHERE n.parked_at IS NULL AND n.tenant_id > w.tenant_id
            ORDER BY n.tenant_id LIMIT 1)
    FROM waiting AS w WHERE w.tenant_id IS NOT NULL
  ),
  served AS MATERIALIZED (
    SELECT w.tenant_id FROM waiting AS w
    WHERE w.tenant_id IS NOT NULL AND EXISTS (
      SELECT FROM jobs AS d
      WHERE d.parked_at IS NULL AND d.tenant_id = w.tenant_id AND d.kind = ANY(p_kinds)
        AND d.available_at <= clock_timestamp()
        AND (d.leased_until IS NULL OR d.leased_until <= clock_timestamp()))
    ORDER BY random() LIMIT p_limit
  ),
  part AS MATERIALIZED (
    SELECT greatest(1, p_limit / greatest(1, count(*)))::integer AS jobs FROM served
  ),
  due AS MATERIALIZED (
    SELECT d.tenant_id, d.subject, d.kind, d.attempts >= p_max_attempts AS is_over,
           -- Two random UUIDs: 244 bits that nobody guesses.
           uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) AS secret
    FROM served AS s
    CROSS JOIN LATERAL (
      SELECT c.tenant_id, c.subject, c.kind, c.attempts FROM jobs AS c
      WHERE c.parked_at IS NULL AND c.tenant_id = s.tenant_id AND c.kind = ANY(p_kinds)
        AND c.available_at <= clock_timestamp()
        AND (c.leased_until IS NULL OR c.leased_until <= clock_timestamp())
      ORDER BY c.available_at LIMIT (SELECT jobs FROM part)
      FOR UPDATE SKIP LOCKED
    ) AS d
    LIMIT p_limit
  ),
  leased AS (
    UPDATE jobs AS j
    SET attempts = CASE WHEN due.is_over THEN j.attempts ELSE j.attempts + 1 END,
        lease_owner = CASE WHEN due.is_over THEN NULL ELSE p_owner END,
        lease_hash = CASE WHEN due.is_over THEN NULL ELSE sha256(due.secret) END,
        leased_until = CASE WHEN due.is_over THEN NULL ELSE clock_timestamp() + p_lease END,
        parked_at = CASE WHEN due.is_over THEN clock_timestamp() END,
        last_error = CASE WHEN due.is_over THEN 'the worker ended without a word'
                          ELSE j.last_error END
    FROM due
    WHERE j.tenant_id = due.tenant_id AND j.subject = due.subject AND j.kind = due.kind
    RETURNING j.tenant_id, j.subject, j.kind, j.generation, j.attempts, j.leased_until, due.secret,
              j.parked_at
  )
  SELECT l.tenant_id, l.subject, l.kind, l.generation, l.attempts, l.leased_until, l.secret
  FROM leased AS l WHERE l.parked_at IS NULL;
END;

CREATE FUNCTION job_totals()
  RETURNS TABLE (kind text, pending bigint, parked bigint, lag_seconds double precision)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  SELECT j.kind,
         count(*) FILTER (WHERE j.parked_at IS NULL),
         count(*) FILTER (WHERE j.parked_at IS NOT NULL),
         coalesce(extract(epoch FROM
           clock_timestamp() - min(j.enqueued_at) FILTER (WHERE j.parked_at IS NULL)), 0)
  FROM jobs AS j GROUP BY j.kind;
END;

REVOKE ALL ON FUNCTION lease_jobs, job_totals FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lease_jobs, job_totals TO annals_app;
