-- Stores a memory, or tells why not. Runs under the lock of append_lock.sql. Returns one row:
-- the verdict and, for 'stored' and 'replayed', the memory.
WITH place AS MATERIALIZED (
  SELECT deleted_at FROM annals.conversations
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
),
-- What has the key, else what has the id, is what an earlier call may have stored.
earlier AS MATERIALIZED (
  SELECT m.memory_id, m.payload_hash = %(payload_hash)s AS same, true AS by_key
  FROM annals.memories AS m
  WHERE m.tenant_id = %(tenant_id)s AND m.conversation_id = %(conversation_id)s
    AND m.idempotency_key = %(idempotency_key)s::text
  UNION ALL
  SELECT m.memory_id,
         m.payload_hash = %(payload_hash)s AND m.conversation_id = %(conversation_id)s, false
  FROM annals.memories AS m
  WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = %(memory_id)s
  ORDER BY by_key DESC
  LIMIT 1
),
verdict AS MATERIALIZED (
  SELECT CASE
    WHEN NOT %(anonymous)s AND NOT EXISTS (SELECT FROM place) THEN 'conversation_not_found'
    WHEN EXISTS (SELECT FROM place WHERE deleted_at IS NOT NULL) THEN 'conversation_not_found'
    WHEN EXISTS (SELECT FROM earlier WHERE same) THEN 'replayed'
    WHEN EXISTS (SELECT FROM earlier WHERE by_key) THEN 'idempotency_key_reused'
    WHEN EXISTS (SELECT FROM earlier) THEN 'memory_exists'
    WHEN %(agent_id)s::uuid IS NOT NULL AND NOT EXISTS (SELECT FROM place) AND NOT EXISTS (
      SELECT FROM annals.agents
      WHERE tenant_id = %(tenant_id)s AND agent_id = %(agent_id)s) THEN 'agent_not_found'
    ELSE 'stored'
  END AS verdict
),
insert_conversation AS (
  INSERT INTO annals.conversations
    (tenant_id, conversation_id, agent_id, session_id, memory_count)
  SELECT %(tenant_id)s, %(conversation_id)s, %(agent_id)s, %(session_id)s::text, 1
  FROM verdict WHERE verdict = 'stored' AND NOT EXISTS (SELECT FROM place)
),
update_conversation AS (
  UPDATE annals.conversations
  SET memory_count = memory_count + 1, version = version + 1, updated_at = now()
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
    AND EXISTS (SELECT FROM verdict WHERE verdict = 'stored')
),
inserted AS (
  INSERT INTO annals.memories
    (tenant_id, memory_id, conversation_id, content, tags, metadata, embedding, embedding_model,
     caller_embedding, idempotency_key, payload_hash)
  SELECT %(tenant_id)s, %(memory_id)s, %(conversation_id)s, %(content)s::text, %(tags)s::text[],
         %(metadata)s::jsonb, %(embedding)s::bytea, %(embedding_model)s::text,
         %(embedding)s::bytea IS NOT NULL, %(idempotency_key)s::text, %(payload_hash)s
  FROM verdict WHERE verdict = 'stored'
  RETURNING *
),
insert_outbox AS (
  INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
  SELECT %(tenant_id)s, 'memory', memory_id, conversation_id FROM inserted
  ON CONFLICT (tenant_id, kind, key) DO UPDATE
  SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
      priority = 0,
      available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
),
kept AS (
  SELECT * FROM inserted
  UNION ALL
  SELECT m.* FROM annals.memories AS m
  JOIN earlier AS e USING (memory_id)
  JOIN verdict AS v ON v.verdict = 'replayed'
  WHERE m.tenant_id = %(tenant_id)s
)
SELECT v.verdict, m.memory_id, m.conversation_id, m.content, m.tags, m.metadata,
       octet_length(m.embedding) / 2 AS embedding_dimension, m.caller_embedding, m.version,
       m.created_at, m.updated_at
FROM verdict AS v
LEFT JOIN kept AS m ON true
