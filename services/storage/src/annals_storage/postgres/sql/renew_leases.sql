-- A key that somebody else is changing right now is left out: its turn comes with the next renewal.
UPDATE annals.outbox AS o
SET available_at = greatest(o.available_at, clock_timestamp() + %(lease)s)
FROM (
  SELECT c.kind, c.key
  FROM unnest(%(kinds)s::text[], %(keys)s::uuid[]) AS held (kind, key)
  JOIN annals.outbox AS c ON c.tenant_id = %(tenant_id)s AND c.kind = held.kind AND c.key = held.key
  WHERE c.lease_owner = %(owner)s AND c.parked_at IS NULL
  FOR UPDATE OF c SKIP LOCKED
) AS mine
WHERE o.tenant_id = %(tenant_id)s AND o.kind = mine.kind AND o.key = mine.key
