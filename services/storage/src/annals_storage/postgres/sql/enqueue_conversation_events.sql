-- They wait since the change of the conversation, so that who waits for that waits for them.
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, priority, enqueued_at)
SELECT %(tenant_id)s, held.kind, held.key, %(conversation_id)s, 1,
       coalesce((SELECT o.enqueued_at FROM annals.outbox AS o
                 WHERE o.tenant_id = %(tenant_id)s AND o.kind = 'conversation'
                   AND o.key = %(conversation_id)s), now())
FROM (
  SELECT 'event' AS kind, event_id AS key FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  UNION ALL
  SELECT 'memory', memory_id FROM annals.memories
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
) AS held
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, enqueued_at = least(outbox.enqueued_at, excluded.enqueued_at),
    attempts = 0, parked_at = NULL,
    available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
