SELECT kind, key, conversation_id, attempts, coalesce(last_error, '') AS error, parked_at
FROM annals.outbox
WHERE tenant_id = %(tenant_id)s AND parked_at IS NOT NULL
  AND (%(cursor_id)s::uuid IS NULL
       OR (parked_at, key) < (%(cursor_time)s::timestamptz, %(cursor_id)s))
ORDER BY parked_at DESC, key DESC
LIMIT %(limit)s
