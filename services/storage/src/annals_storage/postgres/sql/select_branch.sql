UPDATE annals.conversations
SET current_branch = %(branch)s, version = version + 1, updated_at = now()
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
