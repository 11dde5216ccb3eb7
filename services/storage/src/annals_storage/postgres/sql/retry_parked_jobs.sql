-- They wait from now on: what they waited before says nothing about the workers.
UPDATE annals.jobs
SET parked_at = NULL, attempts = 0, last_error = NULL, available_at = clock_timestamp(),
    enqueued_at = clock_timestamp()
WHERE tenant_id = %(tenant_id)s AND parked_at IS NOT NULL
  AND (%(conversation_ids)s::uuid[] IS NULL OR subject = ANY(%(conversation_ids)s))
RETURNING kind
