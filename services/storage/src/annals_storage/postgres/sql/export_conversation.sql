SELECT c.* FROM annals.conversations AS c
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
