-- Has those of these ids that are events or memories mirrored again, as they will be then. A lease
-- is left alone: who holds it may still write, and then hands the key back.
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, priority)
SELECT %(tenant_id)s, source.kind, source.key, source.conversation_id, 1
FROM (
  SELECT 'event' AS kind, event_id AS key, conversation_id FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND event_id = ANY(%(ids)s)
  UNION ALL
  SELECT 'memory', memory_id, conversation_id FROM annals.memories
  WHERE tenant_id = %(tenant_id)s AND memory_id = ANY(%(ids)s)
) AS source
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
    enqueued_at = now(),
    available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
RETURNING key
