-- What belongs into the mirror. The chunks of what is deleted stay, for a restore, but must not
-- be in the mirror: few as they are, they are counted apart, by the index events_gone. A memory has
-- at most two embeddings: see save_memory_embeddings.sql.
SELECT (
  SELECT count(*)
  FROM annals.chunks AS k
  JOIN annals.conversations AS c USING (tenant_id, conversation_id)
  WHERE k.tenant_id = %(tenant_id)s AND c.deleted_at IS NULL
    AND (%(embedding_model)s::text IS NULL OR k.embedding_model = %(embedding_model)s)
) - (
  SELECT count(*)
  FROM annals.events AS e
  JOIN annals.chunks AS k USING (tenant_id, event_id)
  JOIN annals.conversations AS c ON c.tenant_id = e.tenant_id
    AND c.conversation_id = e.conversation_id
  WHERE e.tenant_id = %(tenant_id)s AND c.deleted_at IS NULL
    AND (e.deleted_at IS NOT NULL OR e.erased_at IS NOT NULL)
    AND (%(embedding_model)s::text IS NULL OR k.embedding_model = %(embedding_model)s)
) + (
  SELECT count(*)
  FROM annals.memories AS m
  JOIN annals.conversations AS c USING (tenant_id, conversation_id)
  WHERE m.tenant_id = %(tenant_id)s AND c.deleted_at IS NULL
    AND CASE WHEN %(embedding_model)s::text IS NULL THEN m.embedding IS NOT NULL
             ELSE m.embedding_model = %(embedding_model)s
               OR m.other_embedding_model = %(embedding_model)s
                 AND m.other_embedding_version = m.version END
) AS chunks
