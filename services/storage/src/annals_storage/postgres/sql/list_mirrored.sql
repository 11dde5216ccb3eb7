-- A page of what belongs into the mirror, by a model or by any: see count_mirrored.sql.
(SELECT k.chunk_id AS point_id, k.event_id AS source_id
 FROM annals.chunks AS k
 JOIN annals.conversations AS c USING (tenant_id, conversation_id)
 WHERE k.tenant_id = %(tenant_id)s AND c.deleted_at IS NULL
   AND (%(embedding_model)s::text IS NULL OR k.embedding_model = %(embedding_model)s)
   AND k.chunk_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
   AND NOT EXISTS (
     SELECT FROM annals.events AS e
     WHERE e.tenant_id = %(tenant_id)s AND e.event_id = k.event_id
       AND (e.deleted_at IS NOT NULL OR e.erased_at IS NOT NULL))
 ORDER BY k.chunk_id LIMIT %(limit)s)
UNION ALL
(SELECT m.memory_id, m.memory_id
 FROM annals.memories AS m
 JOIN annals.conversations AS c USING (tenant_id, conversation_id)
 WHERE m.tenant_id = %(tenant_id)s AND c.deleted_at IS NULL
   AND CASE WHEN %(embedding_model)s::text IS NULL THEN m.embedding IS NOT NULL
            ELSE m.embedding_model = %(embedding_model)s
              OR m.other_embedding_model = %(embedding_model)s
                AND m.other_embedding_version = m.version END
   AND m.memory_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
 ORDER BY m.memory_id LIMIT %(limit)s)
ORDER BY point_id LIMIT %(limit)s
