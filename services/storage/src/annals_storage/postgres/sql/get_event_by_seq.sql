SELECT e.event_id
FROM annals.events AS e
WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s AND e.seq = %(seq)s
