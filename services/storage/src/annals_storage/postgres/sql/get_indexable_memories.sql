-- Memories as they are now, with what the engine filters by.
SELECT m.memory_id, m.conversation_id, m.content, m.tags, m.version,
       CASE WHEN m.embedding_model = %(embedding_model)s THEN m.embedding
            WHEN m.other_embedding_model = %(embedding_model)s
              AND m.other_embedding_version = m.version THEN m.other_embedding END AS embedding,
       c.deleted_at IS NOT NULL AS deleted, c.agent_id, c.user_id, c.session_id
FROM annals.memories AS m
JOIN annals.conversations AS c USING (tenant_id, conversation_id)
WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = ANY(%(memory_ids)s)
