-- Looks through the next chunks for those of a model.
WITH page AS MATERIALIZED (
  SELECT chunk_id, embedding_model FROM annals.chunks
  WHERE tenant_id = %(tenant_id)s
    AND chunk_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
  ORDER BY chunk_id LIMIT %(limit)s
),
gone AS (
  DELETE FROM annals.chunks AS c
  USING page AS p
  WHERE c.tenant_id = %(tenant_id)s AND c.chunk_id = p.chunk_id
    AND p.embedding_model = %(embedding_model)s
)
SELECT (SELECT chunk_id FROM page ORDER BY chunk_id DESC LIMIT 1) AS last
