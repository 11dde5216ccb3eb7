-- What follows sees everything that the previous holder of the lock committed.
SELECT current_branch, branch_count, next_seq - 1 AS last_seq
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND deleted_at IS NULL
FOR NO KEY UPDATE
