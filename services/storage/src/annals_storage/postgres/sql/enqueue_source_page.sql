-- Has the next events and memories mirrored again, as bulk. What waits already is bumped: who is
-- at it now may not know yet of all it is to be mirrored into, and hands the key back. Its lease or
-- pause is left alone, and what is parked stays so: it would only fail again.
WITH page AS MATERIALIZED (
  SELECT source.kind, source.key, source.conversation_id FROM (
    (SELECT 'event' AS kind, e.event_id AS key, e.conversation_id
     FROM annals.events AS e
     WHERE e.tenant_id = %(tenant_id)s AND e.deleted_at IS NULL AND e.erased_at IS NULL
       AND e.event_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
     ORDER BY e.event_id LIMIT %(limit)s)
    UNION ALL
    (SELECT 'memory', m.memory_id, m.conversation_id
     FROM annals.memories AS m
     WHERE m.tenant_id = %(tenant_id)s
       AND m.memory_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
     ORDER BY m.memory_id LIMIT %(limit)s)
  ) AS source
  ORDER BY source.key LIMIT %(limit)s
),
queued AS (
  INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, priority)
  SELECT %(tenant_id)s, kind, key, conversation_id, 1 FROM page ORDER BY kind, key
  ON CONFLICT (tenant_id, kind, key) DO UPDATE
  SET generation = outbox.generation + 1
  WHERE outbox.parked_at IS NULL
)
SELECT key FROM page ORDER BY key
