-- Embeddings of texts that were embedded before by this model, wherever they stood. Chunks of
-- versions that kept no signs of tokens are embedded anew when they are mirrored again.
SELECT h.content_hash, k.embedding, k.token_signs
FROM unnest(%(content_hashes)s::bytea[]) AS h (content_hash)
CROSS JOIN LATERAL (
  SELECT embedding, token_signs FROM annals.chunks AS k
  WHERE k.tenant_id = %(tenant_id)s AND k.content_hash = h.content_hash
    AND k.embedding_model = %(embedding_model)s AND k.token_signs IS NOT NULL
  LIMIT 1
) AS k
