-- Taken before the memory's own row, as by everything that changes what a conversation holds.
SELECT conversation_id
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = (
  SELECT conversation_id FROM annals.memories
  WHERE tenant_id = %(tenant_id)s AND memory_id = %(memory_id)s)
FOR NO KEY UPDATE
