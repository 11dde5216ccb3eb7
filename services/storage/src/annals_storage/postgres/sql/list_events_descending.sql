-- A page of a branch's view. Every part is read as far as the page may need, and the order of
-- the answer follows from ORDER BY alone. The planner sorts part by part and stops reading when
-- the page is full, which tests/integration/test_branch_plan.py watches over. CASE, not
-- coalesce: row-level security keeps that out of index conditions.
WITH page AS (
  SELECT e.*, part.view_branch, coalesce(octet_length(e.content), 0) + coalesce(octet_length(e.tool_input), 0)
         + coalesce(octet_length(e.tool_result), 0) + coalesce(octet_length(e.error_message), 0)
         + coalesce(octet_length(e.metadata::text), 0) + 256 AS text_bytes
  FROM (
    SELECT asked.view_branch, v.branch, v.after_seq AS place,
           greatest(v.after_seq, %(after_seq)s::bigint) AS after_seq,
           least(v.until_seq, %(before_seq)s::bigint - 1) AS until_seq
    FROM annals.conversations AS c
    CROSS JOIN LATERAL (
      SELECT CASE WHEN %(branch)s::integer IS NULL THEN c.current_branch ELSE %(branch)s END
    ) AS asked (view_branch)
    CROSS JOIN LATERAL annals.branch_view(
      c.tenant_id, c.conversation_id, asked.view_branch) AS v
    WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
      AND c.deleted_at IS NULL
      AND v.until_seq > %(after_seq)s AND v.after_seq < %(before_seq)s::bigint - 1
    ORDER BY v.after_seq DESC
  ) AS part
  CROSS JOIN LATERAL (
    SELECT e.*
    FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
      AND e.branch = part.branch AND e.seq > part.after_seq AND e.seq <= part.until_seq
      AND (%(show_deleted)s::boolean OR (e.deleted_at IS NULL AND e.erased_at IS NULL))
      AND (%(start_time)s::timestamptz IS NULL OR e.event_time >= %(start_time)s)
      AND (%(end_time)s::timestamptz IS NULL OR e.event_time < %(end_time)s)
      AND (%(types)s::text[] IS NULL OR e.type = ANY(%(types)s))
      AND (%(roles)s::text[] IS NULL OR e.role = ANY(%(roles)s))
      AND (%(tool_names)s::text[] IS NULL OR e.tool_name = ANY(%(tool_names)s))
    ORDER BY e.seq DESC
    LIMIT %(limit)s::bigint + 1
  ) AS e
  ORDER BY part.place DESC, e.seq DESC
  LIMIT %(limit)s::bigint + 1
),
-- A page ends after limit events or when it is full in bytes, whichever comes first, but holds
-- at least one event. has_more: something of the query was cut off.
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
