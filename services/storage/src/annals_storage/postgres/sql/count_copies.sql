SELECT count(*) AS event_count
FROM annals.events
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  AND origin_event_id IS NOT NULL
