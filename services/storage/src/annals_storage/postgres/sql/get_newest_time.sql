-- When the newest event of some conversations happened, each by its last position.
SELECT max(e.event_time) AS event_time
FROM unnest(%(conversation_ids)s::uuid[]) AS wanted (conversation_id)
CROSS JOIN LATERAL (
  SELECT event_time FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND conversation_id = wanted.conversation_id
    AND deleted_at IS NULL
  ORDER BY seq DESC
  LIMIT 1
) AS e
