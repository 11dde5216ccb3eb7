-- The outbox in two lanes, shared fairly among tenants, and what an operator asks of it.
SET LOCAL search_path = annals;

-- 0: somebody waits for it. 1: bulk, as of imports, copies and what is mirrored anew.
ALTER TABLE outbox ADD COLUMN priority smallint NOT NULL DEFAULT 0 CHECK (priority IN (0, 1));
CREATE INDEX outbox_by_turn ON outbox (priority, tenant_id, available_at) WHERE parked_at IS NULL;
DROP INDEX outbox_by_availability;
CREATE INDEX outbox_parked ON outbox (tenant_id, parked_at, key) WHERE parked_at IS NOT NULL;

-- Leases up to p_limit due keys of one lane. Every tenant that has any gets an equal part, its
-- oldest ones. Tenants are visited by skipping along the index, so that a claim costs as much as
-- there are tenants waiting, however many rows wait. p_tenants at a time: a batch of a single key
-- each would keep the model idle; which ones is left to chance, so that all get their turn.
CREATE FUNCTION lease_lane(p_lane smallint, p_owner text, p_limit integer, p_lease interval,
                           p_tenants integer)
  RETURNS TABLE (tenant_id uuid, kind text, key uuid, conversation_id uuid,
                 generation bigint, attempts integer, priority smallint)
  LANGUAGE sql VOLATILE SET search_path = annals, pg_temp
  -- Nobody's estimate of a queue holds for long: always by the indexes.
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off
BEGIN ATOMIC
  WITH RECURSIVE waiting (tenant_id) AS (
    (SELECT f.tenant_id FROM outbox AS f
     WHERE f.parked_at IS NULL AND f.priority = p_lane ORDER BY f.tenant_id LIMIT 1)
    UNION ALL
    SELECT (SELECT n.tenant_id FROM outbox AS n
            WHERE n.parked_at IS NULL AND n.priority = p_lane AND n.tenant_id > w.tenant_id
            ORDER BY n.tenant_id LIMIT 1)
    FROM waiting AS w WHERE w.tenant_id IS NOT NULL
  ),
  served AS MATERIALIZED (
    SELECT w.tenant_id FROM waiting AS w
    WHERE w.tenant_id IS NOT NULL AND EXISTS (
      SELECT FROM outbox AS d
      WHERE d.parked_at IS NULL AND d.priority = p_lane AND d.tenant_id = w.tenant_id
        AND d.available_at <= clock_timestamp())
    ORDER BY random() LIMIT p_tenants
  ),
  part AS MATERIALIZED (
    SELECT greatest(1, p_limit / greatest(1, count(*)))::integer AS keys FROM served
  ),
  due AS MATERIALIZED (
    SELECT d.tenant_id, d.kind, d.key
    FROM served AS s
    CROSS JOIN LATERAL (
      SELECT c.tenant_id, c.kind, c.key FROM outbox AS c
      WHERE c.parked_at IS NULL AND c.priority = p_lane AND c.tenant_id = s.tenant_id
        AND c.available_at <= clock_timestamp()
      ORDER BY c.available_at LIMIT (SELECT keys FROM part)
      FOR UPDATE SKIP LOCKED
    ) AS d
    LIMIT p_limit
  )
  UPDATE outbox AS o
  SET available_at = clock_timestamp() + p_lease, lease_owner = p_owner, attempts = o.attempts + 1
  FROM due
  WHERE o.tenant_id = due.tenant_id AND o.kind = due.kind AND o.key = due.key
  RETURNING o.tenant_id, o.kind, o.key, o.conversation_id, o.generation, o.attempts, o.priority;
END;

-- An eighth of what is leased is bulk whenever some waits, so that it never starves; else what
-- somebody waits for comes first. What one lane leaves free the other one takes.
CREATE FUNCTION lease_outbox(p_owner text, p_limit integer, p_lease interval)
  RETURNS TABLE (tenant_id uuid, kind text, key uuid, conversation_id uuid,
                 generation bigint, attempts integer, priority smallint)
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = annals, pg_temp
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

-- For processes of the former version, until a rollout is over.
CREATE OR REPLACE FUNCTION claim_outbox(p_owner text, p_limit integer, p_lease interval)
  RETURNS TABLE (tenant_id uuid, kind text, key uuid, conversation_id uuid,
                 generation bigint, attempts integer)
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  SELECT l.tenant_id, l.kind, l.key, l.conversation_id, l.generation, l.attempts
  FROM lease_outbox(p_owner, p_limit, p_lease) AS l;
END;

CREATE FUNCTION outbox_lanes()
  RETURNS TABLE (priority smallint, pending bigint, parked bigint, lag_seconds double precision)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  SELECT lane::smallint,
         count(o.key) FILTER (WHERE o.parked_at IS NULL),
         count(o.key) FILTER (WHERE o.parked_at IS NOT NULL),
         coalesce(extract(epoch FROM
           clock_timestamp() - min(o.enqueued_at) FILTER (WHERE o.parked_at IS NULL)), 0)
  FROM generate_series(0, 1) AS lane
  LEFT JOIN outbox AS o ON o.priority = lane
  GROUP BY lane ORDER BY lane;
END;

REVOKE ALL ON FUNCTION lease_lane, lease_outbox, outbox_lanes FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lease_outbox, outbox_lanes TO annals_app;
