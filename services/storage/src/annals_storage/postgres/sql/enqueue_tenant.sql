INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, priority)
SELECT tenant_id, 'conversation', conversation_id, conversation_id, 1
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
    available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
RETURNING key
