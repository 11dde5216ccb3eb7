-- The trunk has no row of its own. No row at all without the conversation.
WITH conversation AS (
  SELECT current_branch, created_at FROM annals.conversations
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND deleted_at IS NULL
),
page AS (
  SELECT * FROM (
    SELECT 1 AS branch, 0 AS parent_branch, 0::bigint AS fork_seq, '' AS display_name,
           c.current_branch, c.created_at
    FROM conversation AS c
    UNION ALL
    SELECT b.branch, b.parent_branch, b.fork_seq, b.display_name, c.current_branch, b.created_at
    FROM conversation AS c
    JOIN annals.branches AS b
      ON b.tenant_id = %(tenant_id)s AND b.conversation_id = %(conversation_id)s
  ) AS every
  WHERE branch > %(after_branch)s
  ORDER BY branch
  LIMIT %(limit)s
)
SELECT p.branch, p.parent_branch, p.fork_seq, p.display_name, p.branch = p.current_branch AS current,
       p.created_at, own.last_seq, own.event_count
FROM page AS p
CROSS JOIN LATERAL (
  SELECT coalesce(max(e.seq), 0) AS last_seq,
         count(*) FILTER (WHERE e.deleted_at IS NULL AND e.erased_at IS NULL) AS event_count
  FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.branch = p.branch
) AS own
ORDER BY p.branch
