SELECT e.*, c.deleted_at AS conversation_deleted_at
FROM annals.events AS e
CROSS JOIN LATERAL (
  SELECT deleted_at FROM annals.conversations AS c
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s
