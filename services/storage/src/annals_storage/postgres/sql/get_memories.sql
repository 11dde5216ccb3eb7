-- Memories of deleted conversations are not visible.
SELECT m.memory_id, m.conversation_id, m.content, m.tags, m.metadata,
       octet_length(m.embedding) / 2 AS embedding_dimension, m.caller_embedding, m.version,
       m.created_at, m.updated_at, c.agent_id, c.user_id, c.session_id
FROM unnest(%(memory_ids)s::uuid[]) AS wanted (memory_id)
CROSS JOIN LATERAL (
  SELECT * FROM annals.memories AS m
  WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = wanted.memory_id LIMIT 1
) AS m
CROSS JOIN LATERAL (
  SELECT agent_id, user_id, session_id, deleted_at FROM annals.conversations AS c
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = m.conversation_id LIMIT 1
) AS c
WHERE c.deleted_at IS NULL
