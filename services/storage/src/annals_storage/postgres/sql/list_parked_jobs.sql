SELECT kind, subject, attempts, coalesce(last_error, '') AS error, parked_at
FROM annals.jobs
WHERE tenant_id = %(tenant_id)s AND parked_at IS NOT NULL
  AND (%(cursor_id)s::uuid IS NULL
       OR (parked_at, subject, kind)
          < (%(cursor_time)s::timestamptz, %(cursor_id)s, %(cursor_kind)s::text))
ORDER BY parked_at DESC, subject DESC, kind DESC
LIMIT %(limit)s
