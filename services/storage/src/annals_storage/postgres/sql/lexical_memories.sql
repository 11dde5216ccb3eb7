-- The best memories of a scope by their words: see lexical_events.sql. What has no embedding by the
-- model in use cannot be compared with the query, and is left out.
SELECT m.memory_id, k.embedding
FROM annals.lexical_memories(
  %(terms)s::integer[], %(conversation_ids)s::uuid[], %(max_rows)s::integer) AS m
CROSS JOIN LATERAL (
  SELECT conversation_id, tags, embedding, embedding_model FROM annals.memories AS k
  WHERE k.tenant_id = %(tenant_id)s AND k.memory_id = m.memory_id LIMIT 1
) AS k
CROSS JOIN LATERAL (
  SELECT agent_id, user_id, session_id, deleted_at FROM annals.conversations AS c
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = k.conversation_id LIMIT 1
) AS c
WHERE c.deleted_at IS NULL AND k.embedding_model = %(embedding_model)s
  AND (%(conversation_ids)s::uuid[] IS NULL OR k.conversation_id = ANY(%(conversation_ids)s::uuid[]))
  AND (%(agent_id)s::uuid IS NULL OR c.agent_id = %(agent_id)s::uuid)
  AND (%(user_id)s::text IS NULL OR c.user_id = %(user_id)s::text)
  AND (%(session_id)s::text IS NULL OR c.session_id = %(session_id)s::text)
  AND k.tags @> %(tags)s::text[]
LIMIT %(limit)s
