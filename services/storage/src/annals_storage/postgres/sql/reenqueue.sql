-- A worker that lost its lease may have written an older state over a newer one: have each of
-- its keys mirrored once more.
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
SELECT %(tenant_id)s, kind, key, conversation_id
FROM unnest(%(kinds)s::text[], %(keys)s::uuid[], %(conversation_ids)s::uuid[])
     AS lost (kind, key, conversation_id)
ON CONFLICT (tenant_id, kind, key) DO UPDATE SET generation = outbox.generation + 1
