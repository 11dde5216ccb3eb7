DELETE FROM annals.topics AS t
WHERE t.tenant_id = %(tenant_id)s AND t.conversation_id = %(conversation_id)s
  AND NOT EXISTS (
    SELECT FROM annals.topic_members AS m
    WHERE m.tenant_id = %(tenant_id)s AND m.topic_id = t.topic_id)
