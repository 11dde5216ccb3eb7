SELECT t.conversation_id FROM annals.topics AS t
JOIN annals.conversations AS c USING (tenant_id, conversation_id)
WHERE t.tenant_id = %(tenant_id)s AND t.topic_id = %(topic_id)s AND c.deleted_at IS NULL
