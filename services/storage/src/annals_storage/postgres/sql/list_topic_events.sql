-- A page of a topic's events in view on a branch, in the order of the conversation.
SELECT e.*
FROM (
  SELECT m.seq
  FROM annals.conversations AS c
  CROSS JOIN LATERAL annals.branch_view(
    c.tenant_id, c.conversation_id,
    CASE WHEN %(branch)s::integer IS NULL THEN c.current_branch ELSE %(branch)s END) AS v
  JOIN annals.topic_members AS m
    ON m.tenant_id = %(tenant_id)s AND m.topic_id = %(topic_id)s
   AND m.branch = v.branch AND m.seq > v.after_seq AND m.seq <= v.until_seq
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
    AND c.deleted_at IS NULL AND m.conversation_id = %(conversation_id)s
    AND m.seq > %(after_seq)s AND m.seq < %(before_seq)s
) AS m
JOIN annals.events AS e
  ON e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s AND e.seq = m.seq
WHERE e.deleted_at IS NULL AND e.erased_at IS NULL
ORDER BY CASE WHEN %(descending)s THEN -e.seq ELSE e.seq END
LIMIT %(limit)s
