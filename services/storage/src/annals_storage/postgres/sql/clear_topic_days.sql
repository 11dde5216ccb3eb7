DELETE FROM annals.topic_days
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
