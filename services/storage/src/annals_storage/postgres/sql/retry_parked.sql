-- They wait from now on: what they waited before says nothing about the indexer.
UPDATE annals.outbox
SET parked_at = NULL, attempts = 0, last_error = NULL, available_at = clock_timestamp(),
    enqueued_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND parked_at IS NOT NULL
  AND (%(keys)s::uuid[] IS NULL OR key = ANY(%(keys)s))
RETURNING key
