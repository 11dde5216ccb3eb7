-- Taken first and in one order, so that concurrent appends wait instead of deadlocking. The
-- statement that follows then sees everything the previous holder committed.
SELECT conversation_id
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = ANY(%(conversation_ids)s)
ORDER BY conversation_id
FOR NO KEY UPDATE
