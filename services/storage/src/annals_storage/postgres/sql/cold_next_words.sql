-- The oldest events with words, up to a number and a size, but at least one.
WITH candidate AS (
  SELECT e.event_id, e.seq, e.version, e.content, e.tool_input, e.tool_result, e.error_message,
         e.metadata::text AS metadata
  FROM annals.events AS e
  JOIN annals.conversations AS c USING (tenant_id, conversation_id)
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.seq > c.cold_until_seq
    AND (%(until_seq)s::bigint IS NULL OR e.seq <= %(until_seq)s)
    AND e.cold_segment_id IS NULL AND e.erased_at IS NULL
    AND (e.content IS NOT NULL OR e.tool_input IS NOT NULL OR e.tool_result IS NOT NULL
         OR e.error_message IS NOT NULL OR e.metadata IS NOT NULL)
  ORDER BY e.seq LIMIT %(max_events)s
),
measured AS (
  SELECT *, row_number() OVER by_seq AS place,
         sum(coalesce(octet_length(content), 0) + coalesce(octet_length(tool_input), 0)
             + coalesce(octet_length(tool_result), 0) + coalesce(octet_length(error_message), 0)
             + coalesce(octet_length(metadata), 0)) OVER by_seq AS bytes_so_far
  FROM candidate
  WINDOW by_seq AS (ORDER BY seq)
)
SELECT * FROM measured
WHERE place = 1 OR bytes_so_far <= %(max_bytes)s
ORDER BY seq
