-- An erasure holds these rows FOR UPDATE: chunks are stored before it or not at all.
SELECT conversation_id
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = ANY(%(conversation_ids)s)
ORDER BY conversation_id
FOR KEY SHARE
