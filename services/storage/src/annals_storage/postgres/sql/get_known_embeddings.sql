-- Embeddings of texts that were embedded before by this model, wherever they stood.
SELECT h.content_hash, k.embedding
FROM unnest(%(content_hashes)s::bytea[]) AS h (content_hash)
CROSS JOIN LATERAL (
  SELECT embedding FROM annals.chunks AS k
  WHERE k.tenant_id = %(tenant_id)s AND k.content_hash = h.content_hash
    AND k.embedding_model = %(embedding_model)s
  LIMIT 1
) AS k
