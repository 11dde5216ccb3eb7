-- The newest visible call of an id, before a seq, in a view: that of the branch named, else of
-- the current one. No row without the conversation.
WITH asked AS (
  SELECT CASE WHEN %(branch)s::integer IS NULL THEN c.current_branch ELSE %(branch)s END
           AS view_branch
  FROM annals.conversations AS c
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
    AND c.deleted_at IS NULL
)
SELECT a.view_branch, call.event_id
FROM asked AS a
LEFT JOIN LATERAL (
  SELECT e.event_id
  FROM annals.events AS e
  JOIN annals.branch_view(
    %(tenant_id)s, %(conversation_id)s, a.view_branch) AS v
    ON v.branch = e.branch AND e.seq > v.after_seq AND e.seq <= v.until_seq
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.tool_call_id = %(tool_call_id)s AND e.type = 'tool_call' AND e.seq < %(before_seq)s
    AND e.deleted_at IS NULL AND e.erased_at IS NULL
  ORDER BY e.seq DESC LIMIT 1
) AS call ON true
