-- Figures of every topic of a conversation, of what is in view on its current branch.
WITH counted AS (
  SELECT m.topic_id, count(*) AS events, min(m.event_time) AS first_at, max(m.event_time) AS last_at
  FROM annals.conversations AS c
  CROSS JOIN LATERAL annals.branch_view(c.tenant_id, c.conversation_id, c.current_branch) AS v
  JOIN annals.topic_members AS m
    ON m.tenant_id = c.tenant_id AND m.conversation_id = c.conversation_id
   AND m.branch = v.branch AND m.seq > v.after_seq AND m.seq <= v.until_seq
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
    AND m.topic_id IS NOT NULL
  GROUP BY m.topic_id
)
UPDATE annals.topics AS t
SET event_count = coalesce(n.events, 0), first_at = n.first_at, last_at = n.last_at
FROM annals.topics AS own
LEFT JOIN counted AS n ON n.topic_id = own.topic_id
WHERE own.tenant_id = %(tenant_id)s AND own.conversation_id = %(conversation_id)s
  AND t.tenant_id = own.tenant_id AND t.topic_id = own.topic_id
