-- What changed since it was claimed is to be looked at again soon: its lease stays as it is.
UPDATE annals.outbox AS o
SET available_at = clock_timestamp() + %(lease)s::interval, held_generation = o.generation
FROM unnest(%(kinds)s::text[], %(keys)s::uuid[], %(generations)s::bigint[])
     AS held (kind, key, generation)
WHERE o.tenant_id = %(tenant_id)s AND o.kind = held.kind AND o.key = held.key
  AND o.generation = held.generation AND o.lease_owner = %(owner)s
