-- Which of these memories belong into the mirror, by a model or by any: see get_mirrored_chunks.sql.
SELECT m.memory_id, m.conversation_id, m.tags, by.embedding, by.embedding_model,
       c.agent_id, c.user_id, c.session_id
FROM annals.memories AS m
CROSS JOIN LATERAL (
  SELECT m.embedding, m.embedding_model
  WHERE m.embedding_model = coalesce(%(embedding_model)s::text, m.embedding_model)
  UNION ALL
  SELECT m.other_embedding, m.other_embedding_model
  WHERE m.other_embedding_model = %(embedding_model)s AND m.other_embedding_version = m.version
  LIMIT 1
) AS by
JOIN annals.conversations AS c USING (tenant_id, conversation_id)
WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = ANY(%(point_ids)s)
  AND c.deleted_at IS NULL AND by.embedding IS NOT NULL
