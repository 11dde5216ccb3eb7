SELECT conversation_id, deleted_at, status, current_branch
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
FOR NO KEY UPDATE
