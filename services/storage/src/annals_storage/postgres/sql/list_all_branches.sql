-- A page of all branches of a conversation.
WITH page AS (
  SELECT e.*, 0 AS view_branch, coalesce(octet_length(e.content), 0) + coalesce(octet_length(e.tool_input), 0)
         + coalesce(octet_length(e.tool_result), 0) + coalesce(octet_length(e.error_message), 0)
         + coalesce(octet_length(e.metadata::text), 0) + 256 AS text_bytes
  FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND EXISTS (
      SELECT FROM annals.conversations AS c
      WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
        AND c.deleted_at IS NULL
    )
    AND e.seq > %(after_seq)s AND e.seq < %(before_seq)s
    AND (%(show_deleted)s::boolean OR (e.deleted_at IS NULL AND e.erased_at IS NULL))
    AND (%(start_time)s::timestamptz IS NULL OR e.event_time >= %(start_time)s)
    AND (%(end_time)s::timestamptz IS NULL OR e.event_time < %(end_time)s)
    AND (%(types)s::text[] IS NULL OR e.type = ANY(%(types)s))
    AND (%(roles)s::text[] IS NULL OR e.role = ANY(%(roles)s))
    AND (%(tool_names)s::text[] IS NULL OR e.tool_name = ANY(%(tool_names)s))
  ORDER BY e.seq
  LIMIT %(limit)s::bigint + 1
),
-- A page ends after limit events or when it is full in bytes, whichever comes first, but holds
-- at least one event. has_more: something of the query was cut off.
measured AS (
  SELECT *, row_number() OVER by_seq AS place, count(*) OVER () AS found,
         sum(text_bytes) OVER by_seq AS bytes_so_far
  FROM page
  WINDOW by_seq AS (ORDER BY seq)
),
fitting AS (
  SELECT * FROM measured
  WHERE place <= %(limit)s AND (place = 1 OR bytes_so_far <= %(max_bytes)s)
)
SELECT *, found > count(*) OVER () AS has_more
FROM fitting
ORDER BY seq
