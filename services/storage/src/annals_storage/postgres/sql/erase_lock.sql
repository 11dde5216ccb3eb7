-- Keeps appends, edits and the indexer's chunks (see chunk_lock.sql) out of a conversation.
SELECT conversation_id
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
FOR UPDATE
