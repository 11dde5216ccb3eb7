-- Embeddings that callers supplied; the others are made anew wherever the memory goes.
SELECT m.memory_id, m.content, m.tags, m.metadata, m.caller_embedding, m.idempotency_key,
       m.payload_hash, m.version, m.created_at, m.updated_at,
       CASE WHEN m.caller_embedding THEN m.embedding END AS embedding,
       CASE WHEN m.caller_embedding THEN m.embedding_model END AS embedding_model
FROM annals.memories AS m
WHERE m.tenant_id = %(tenant_id)s AND m.conversation_id = %(conversation_id)s
  AND (m.created_at, m.memory_id) > (%(after_created_at)s::timestamptz, %(after_memory_id)s::uuid)
ORDER BY m.created_at, m.memory_id
LIMIT %(limit)s
