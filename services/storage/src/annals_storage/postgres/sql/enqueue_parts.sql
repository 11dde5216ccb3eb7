-- Has the events of some parts mirrored again.
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, priority)
SELECT %(tenant_id)s, 'event', e.event_id, %(conversation_id)s, 1
FROM unnest(%(branches)s::integer[], %(afters)s::bigint[], %(untils)s::bigint[])
     AS part (branch, after_seq, until_seq)
CROSS JOIN LATERAL (
  SELECT e.event_id FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.branch = part.branch AND e.seq > part.after_seq AND e.seq <= part.until_seq
) AS e
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
    enqueued_at = now(),
    available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
