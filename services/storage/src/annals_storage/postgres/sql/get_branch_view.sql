SELECT branch, after_seq, until_seq
FROM annals.branch_view(%(tenant_id)s, %(conversation_id)s, %(branch)s)
ORDER BY after_seq
