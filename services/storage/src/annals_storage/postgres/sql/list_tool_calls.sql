-- The calls a message triggered, in a view: those that name it as parent, and those without a
-- parent up to the next message. A deleted message keeps its place, and its calls.
WITH part AS MATERIALIZED (
  SELECT * FROM annals.branch_view(%(tenant_id)s, %(conversation_id)s, %(branch)s)
),
next_message AS MATERIALIZED (
  SELECT min(next.seq) AS seq
  FROM part
  CROSS JOIN LATERAL (
    SELECT e.seq FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
      AND e.branch = part.branch AND e.seq > greatest(part.after_seq, %(seq)s::bigint)
      AND e.seq <= part.until_seq AND e.type = 'message'
    ORDER BY e.seq LIMIT 1
  ) AS next
  WHERE part.until_seq > %(seq)s
),
between_messages AS (
  SELECT e.event_id, e.seq
  FROM part
  CROSS JOIN next_message AS n
  CROSS JOIN LATERAL (
    SELECT e.event_id, e.seq FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
      AND e.branch = part.branch AND e.seq > greatest(part.after_seq, %(seq)s::bigint)
      AND e.seq <= least(part.until_seq, n.seq) AND e.type = 'tool_call'
      AND e.parent_event_id IS NULL AND e.deleted_at IS NULL AND e.erased_at IS NULL
    ORDER BY e.seq LIMIT %(limit)s
  ) AS e
  WHERE part.until_seq > %(seq)s
),
named AS (
  SELECT e.event_id, e.seq
  FROM annals.events AS e
  JOIN part ON part.branch = e.branch AND e.seq > part.after_seq AND e.seq <= part.until_seq
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.parent_event_id = %(event_id)s AND e.type = 'tool_call'
    AND e.deleted_at IS NULL AND e.erased_at IS NULL
)
SELECT event_id
FROM (SELECT * FROM between_messages UNION SELECT * FROM named) AS call
ORDER BY seq
LIMIT %(limit)s
