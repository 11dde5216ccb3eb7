SELECT m.memory_id, m.conversation_id, m.content, m.tags, m.metadata,
       octet_length(m.embedding) / 2 AS embedding_dimension, m.caller_embedding, m.version,
       m.created_at, m.updated_at
FROM annals.memories AS m
CROSS JOIN LATERAL (
  SELECT deleted_at FROM annals.conversations AS c
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = m.conversation_id LIMIT 1
) AS c
WHERE m.tenant_id = %(tenant_id)s AND c.deleted_at IS NULL
  AND (%(conversation_id)s::uuid IS NULL OR m.conversation_id = %(conversation_id)s)
  AND m.tags @> %(tags)s::text[]
  AND (%(cursor_id)s::uuid IS NULL
       OR (m.created_at, m.memory_id) < (%(cursor_time)s::timestamptz, %(cursor_id)s))
ORDER BY m.created_at DESC, m.memory_id DESC
LIMIT %(limit)s
