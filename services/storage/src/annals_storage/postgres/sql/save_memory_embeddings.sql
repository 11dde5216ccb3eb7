-- A memory that changed meanwhile keeps what it has: it waits to be mirrored once more.
UPDATE annals.memories AS m
SET embedding = fresh.embedding, embedding_model = %(embedding_model)s, caller_embedding = false
FROM unnest(%(memory_id)s::uuid[], %(version)s::integer[], %(embedding)s::bytea[])
     AS fresh (memory_id, version, embedding)
WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = fresh.memory_id AND m.version = fresh.version
