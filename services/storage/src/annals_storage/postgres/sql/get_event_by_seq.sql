-- What get_events.sql shows, at a position.
SELECT e.*
FROM annals.events AS e
CROSS JOIN LATERAL (
  SELECT deleted_at FROM annals.conversations AS c
  WHERE c.tenant_id = e.tenant_id AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
  AND e.seq = %(seq)s AND c.deleted_at IS NULL AND e.deleted_at IS NULL AND e.erased_at IS NULL
