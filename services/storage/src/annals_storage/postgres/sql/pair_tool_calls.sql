-- For calls in a view: the newest result before the next call of the same id, and the message
-- that triggered them: their parent, or without one the message before them.
WITH part AS MATERIALIZED (
  SELECT * FROM annals.branch_view(%(tenant_id)s, %(conversation_id)s, %(branch)s)
),
call AS MATERIALIZED (
  SELECT e.event_id, e.seq, e.tool_call_id, e.parent_event_id
  FROM unnest(%(event_ids)s::uuid[]) AS wanted (event_id)
  CROSS JOIN LATERAL (
    SELECT * FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.event_id = wanted.event_id LIMIT 1
  ) AS e
)
SELECT call.event_id AS call_id, result.event_id AS result_id,
       CASE WHEN call.parent_event_id IS NULL THEN before.event_id ELSE parent.event_id END
         AS message_id
FROM call
LEFT JOIN LATERAL (
  SELECT min(e.seq) AS seq
  FROM annals.events AS e
  JOIN part ON part.branch = e.branch AND e.seq > part.after_seq AND e.seq <= part.until_seq
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.tool_call_id = call.tool_call_id AND e.type = 'tool_call' AND e.seq > call.seq
) AS following ON true
LEFT JOIN LATERAL (
  SELECT e.event_id
  FROM annals.events AS e
  JOIN part ON part.branch = e.branch AND e.seq > part.after_seq AND e.seq <= part.until_seq
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.tool_call_id = call.tool_call_id AND e.type = 'tool_result' AND e.seq > call.seq
    AND (following.seq IS NULL OR e.seq < following.seq)
    AND e.deleted_at IS NULL AND e.erased_at IS NULL
  ORDER BY e.seq DESC LIMIT 1
) AS result ON true
LEFT JOIN LATERAL (
  SELECT e.event_id
  FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = call.parent_event_id AND e.type = 'message'
    AND e.deleted_at IS NULL AND e.erased_at IS NULL
  LIMIT 1
) AS parent ON true
LEFT JOIN LATERAL (
  SELECT CASE WHEN e.deleted_at IS NULL AND e.erased_at IS NULL THEN e.event_id END AS event_id
  FROM part
  CROSS JOIN LATERAL (
    SELECT * FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
      AND e.branch = part.branch AND e.seq > part.after_seq
      AND e.seq <= least(part.until_seq, call.seq) AND e.type = 'message'
    ORDER BY e.seq DESC LIMIT 1
  ) AS e
  WHERE call.parent_event_id IS NULL AND part.after_seq < call.seq
  ORDER BY e.seq DESC LIMIT 1
) AS before ON true
