-- The parts of a branch's view, one row without parts for a branch that does not exist, and no
-- row without the conversation.
SELECT v.branch, v.after_seq, v.until_seq
FROM annals.conversations AS c
LEFT JOIN LATERAL annals.branch_view(%(tenant_id)s, c.conversation_id, %(branch)s) AS v ON true
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
  AND c.deleted_at IS NULL
ORDER BY v.after_seq
