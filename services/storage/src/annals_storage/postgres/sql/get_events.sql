-- Events of deleted conversations, deleted events and erased ones are not visible.
SELECT e.*
FROM annals.events AS e
CROSS JOIN LATERAL (
  SELECT deleted_at FROM annals.conversations AS c
  WHERE c.tenant_id = e.tenant_id AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
WHERE e.tenant_id = %(tenant_id)s AND e.event_id = ANY(%(event_ids)s) AND c.deleted_at IS NULL
  AND e.deleted_at IS NULL AND e.erased_at IS NULL
