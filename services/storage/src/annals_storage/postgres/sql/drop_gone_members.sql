DELETE FROM annals.topic_members AS m
USING annals.events AS e
WHERE m.tenant_id = %(tenant_id)s AND m.conversation_id = %(conversation_id)s
  AND e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s AND e.seq = m.seq
  AND (e.deleted_at IS NOT NULL OR e.erased_at IS NOT NULL)
