WITH stored AS (
  INSERT INTO annals.memories
    (tenant_id, memory_id, conversation_id, content, tags, metadata, embedding, embedding_model,
     caller_embedding, idempotency_key, payload_hash, version, created_at, updated_at)
  SELECT %(tenant_id)s, r.memory_id, %(conversation_id)s, r.content, r.tags, r.metadata,
         r.embedding, r.embedding_model, r.caller_embedding, r.idempotency_key, r.payload_hash,
         r.version, r.created_at, r.updated_at
  FROM json_populate_recordset(NULL::annals.memories, %(rows)s::json) AS r
  RETURNING memory_id
)
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, priority)
SELECT %(tenant_id)s, 'memory', memory_id, %(conversation_id)s, 1 FROM stored
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
    conversation_id = excluded.conversation_id,
    available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
