INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
SELECT e.tenant_id, 'event', e.event_id, e.conversation_id
FROM annals.events AS e
WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, available_at = now()
