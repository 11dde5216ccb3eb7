-- They wait since the change of the conversation, so that who waits for that waits for them.
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, enqueued_at)
SELECT e.tenant_id, 'event', e.event_id, e.conversation_id,
       coalesce((SELECT o.enqueued_at FROM annals.outbox AS o
                 WHERE o.tenant_id = %(tenant_id)s AND o.kind = 'conversation'
                   AND o.key = %(conversation_id)s), now())
FROM annals.events AS e
WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, enqueued_at = least(outbox.enqueued_at, excluded.enqueued_at),
    attempts = 0, parked_at = NULL, available_at = now()
