-- A part of a conversation's events, rows and all. Under erase_lock.sql.
WITH batch AS MATERIALIZED (
  SELECT event_id FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  ORDER BY seq LIMIT %(limit)s
),
payloads AS (
  DELETE FROM annals.observation_payloads AS p USING batch AS b
  WHERE p.tenant_id = %(tenant_id)s AND p.event_id = b.event_id
  RETURNING 1
),
gone_chunks AS (
  DELETE FROM annals.chunks AS k USING batch AS b
  WHERE k.tenant_id = %(tenant_id)s AND k.event_id = b.event_id
  RETURNING 1
),
-- A context may quote any event of its conversation.
gone_contexts AS (
  DELETE FROM annals.context_cache
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  RETURNING 1
),
gone AS (
  DELETE FROM annals.events AS e USING batch AS b
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = b.event_id
    AND e.conversation_id = %(conversation_id)s
  RETURNING e.erased_at
)
SELECT (SELECT count(*) FROM batch) AS rows_erased,
       -- A place that was empty already is no event erased.
       (SELECT count(*) FROM gone WHERE erased_at IS NULL) AS events,
       annals.erase_observations(ARRAY(SELECT event_id FROM batch)) AS observations,
       (SELECT count(*) FROM payloads) AS observation_payloads,
       (SELECT count(*) FROM gone_chunks) AS chunks,
       (SELECT count(*) FROM gone_contexts) AS cached_contexts
