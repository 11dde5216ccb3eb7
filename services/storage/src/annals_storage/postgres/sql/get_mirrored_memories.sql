-- Which of these memories belong into the mirror: see get_mirrored_chunks.sql.
SELECT m.memory_id, m.conversation_id, m.tags, m.embedding, m.embedding_model,
       c.agent_id, c.user_id, c.session_id
FROM annals.memories AS m
JOIN annals.conversations AS c USING (tenant_id, conversation_id)
WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = ANY(%(point_ids)s)
  AND c.deleted_at IS NULL AND m.embedding IS NOT NULL
