-- What changed while a worker was at it is mirrored once more; so is what a worker did whose
-- lease was lost, for it may have written an older state over a newer one. The worker's own lease
-- ends here; that of another one does not: who holds it hands the key back in the same way.
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
SELECT %(tenant_id)s, kind, key, conversation_id
FROM unnest(%(kinds)s::text[], %(keys)s::uuid[], %(conversation_ids)s::uuid[])
     AS lost (kind, key, conversation_id)
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1,
    available_at = CASE WHEN outbox.lease_owner = %(owner)s THEN clock_timestamp()
                        ELSE outbox.available_at END,
    lease_owner = nullif(outbox.lease_owner, %(owner)s)
