-- A NULL flag leaves its column alone. No row comes back when the memory is gone, hidden or its
-- version has moved on.
WITH changed AS (
  UPDATE annals.memories AS m
  SET content = CASE WHEN %(set_content)s THEN %(content)s ELSE m.content END,
      tags = CASE WHEN %(set_tags)s THEN %(tags)s::text[] ELSE m.tags END,
      metadata = CASE WHEN %(set_metadata)s THEN %(metadata)s::jsonb ELSE m.metadata END,
      embedding = CASE WHEN %(set_content)s THEN %(embedding)s::bytea ELSE m.embedding END,
      embedding_model = CASE WHEN %(set_content)s THEN %(embedding_model)s::text
                             ELSE m.embedding_model END,
      caller_embedding = CASE WHEN %(set_content)s THEN %(embedding)s::bytea IS NOT NULL
                              ELSE m.caller_embedding END,
      version = m.version + 1, updated_at = now()
  FROM annals.conversations AS c
  WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = %(memory_id)s
    AND c.tenant_id = %(tenant_id)s AND c.conversation_id = m.conversation_id
    AND c.deleted_at IS NULL
    AND (%(expected_version)s::integer IS NULL OR m.version = %(expected_version)s)
  RETURNING m.*
),
update_conversation AS (
  UPDATE annals.conversations AS c
  SET version = c.version + 1, updated_at = now()
  FROM changed AS m
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = m.conversation_id
),
insert_outbox AS (
  INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
  SELECT %(tenant_id)s, 'memory', memory_id, conversation_id FROM changed
  ON CONFLICT (tenant_id, kind, key) DO UPDATE
  SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
      priority = 0,
      available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
)
SELECT memory_id, conversation_id, content, tags, metadata,
       octet_length(embedding) / 2 AS embedding_dimension, caller_embedding, version,
       created_at, updated_at
FROM changed
