-- A memory that changed meanwhile keeps what it has: it waits to be mirrored once more. Callers are
-- told of the embedding by the model that serves; one by another model in use is kept beside it.
UPDATE annals.memories AS m
SET embedding = CASE WHEN %(is_serving)s THEN fresh.embedding ELSE m.embedding END,
    embedding_model = CASE WHEN %(is_serving)s THEN %(embedding_model)s ELSE m.embedding_model END,
    caller_embedding = m.caller_embedding AND NOT %(is_serving)s,
    other_embedding = CASE WHEN %(is_serving)s THEN m.other_embedding ELSE fresh.embedding END,
    other_embedding_model = CASE WHEN %(is_serving)s THEN m.other_embedding_model
                                 ELSE %(embedding_model)s END,
    other_embedding_version = CASE WHEN %(is_serving)s THEN m.other_embedding_version
                                   ELSE m.version END
FROM unnest(%(memory_id)s::uuid[], %(version)s::integer[], %(embedding)s::bytea[])
     AS fresh (memory_id, version, embedding)
WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = fresh.memory_id AND m.version = fresh.version
