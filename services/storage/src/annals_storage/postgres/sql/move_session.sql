-- Locked in the order of append_lock.sql, so that appends wait instead of deadlocking.
WITH locked AS (
  SELECT conversation_id
  FROM annals.conversations
  WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s AND user_id IS NULL
    AND (%(agent_id)s::uuid IS NULL OR agent_id = %(agent_id)s)
  ORDER BY conversation_id
  FOR NO KEY UPDATE
)
UPDATE annals.conversations AS c
SET user_id = %(user_id)s, session_id = NULL, version = c.version + 1, updated_at = now()
FROM locked
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = locked.conversation_id
RETURNING c.conversation_id
