-- A page ends after %(limit)s events or when it is full in bytes, whichever comes first, but holds
-- at least one event. has_more: something of the conversation was cut off.
WITH page AS (
  SELECT *, coalesce(octet_length(content), 0) + coalesce(octet_length(tool_input), 0)
           + coalesce(octet_length(tool_result), 0) + coalesce(octet_length(error_message), 0)
           + coalesce(octet_length(metadata::text), 0) + 256 AS text_bytes
  FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
    AND deleted_at IS NULL AND seq > %(after_seq)s AND seq < %(before_seq)s
    AND (%(start_time)s::timestamptz IS NULL OR event_time >= %(start_time)s)
    AND (%(end_time)s::timestamptz IS NULL OR event_time < %(end_time)s)
    AND (%(types)s::text[] IS NULL OR type = ANY(%(types)s))
    AND (%(roles)s::text[] IS NULL OR role = ANY(%(roles)s))
    AND (%(tool_names)s::text[] IS NULL OR tool_name = ANY(%(tool_names)s))
  ORDER BY seq DESC
  LIMIT %(limit)s::bigint + 1
),
measured AS (
  SELECT *, row_number() OVER by_seq AS place, count(*) OVER () AS found,
         sum(text_bytes) OVER by_seq AS bytes_so_far
  FROM page
  WINDOW by_seq AS (ORDER BY seq DESC)
),
fitting AS (
  SELECT * FROM measured
  WHERE place <= %(limit)s AND (place = 1 OR bytes_so_far <= %(max_bytes)s)
)
SELECT *, found > count(*) OVER () AS has_more
FROM fitting
ORDER BY seq DESC
