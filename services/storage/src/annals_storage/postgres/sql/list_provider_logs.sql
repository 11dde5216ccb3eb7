-- list_provider_logs
-- A page ends after %(limit)s logs or when it is full in bytes, whichever comes first, but holds
-- at least one. has_more: something was cut off. An expired log is gone before it is removed.
WITH page AS (
  SELECT *, octet_length(request_json) + octet_length(response_json) + 256 AS text_bytes
  FROM annals.provider_logs
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
    AND expires_at > now()
    AND (%(cursor_id)s::uuid IS NULL
         OR (created_at, provider_log_id) < (%(cursor_time)s, %(cursor_id)s))
  ORDER BY created_at DESC, provider_log_id DESC
  LIMIT %(limit)s::bigint + 1
),
measured AS (
  SELECT *, row_number() OVER by_time AS place, count(*) OVER () AS found,
         sum(text_bytes) OVER by_time AS bytes_so_far
  FROM page
  WINDOW by_time AS (ORDER BY created_at DESC, provider_log_id DESC)
),
fitting AS (
  SELECT * FROM measured
  WHERE place <= %(limit)s AND (place = 1 OR bytes_so_far <= %(max_bytes)s)
)
SELECT *, found > count(*) OVER () AS has_more
FROM fitting
ORDER BY created_at DESC, provider_log_id DESC
