INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
SELECT %(tenant_id)s, 'conversation', moved, moved
FROM unnest(%(conversation_ids)s::uuid[]) AS moved
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
    priority = 0,
    enqueued_at = now(),
    available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
