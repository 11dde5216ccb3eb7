-- Only what did not change since it was claimed is done.
DELETE FROM annals.outbox AS o
USING unnest(%(kinds)s::text[], %(keys)s::uuid[], %(generations)s::bigint[])
      AS done (kind, key, generation)
WHERE o.tenant_id = %(tenant_id)s AND o.kind = done.kind AND o.key = done.key
  AND o.generation = done.generation AND o.lease_owner = %(owner)s
RETURNING o.key
