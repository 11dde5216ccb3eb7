-- See save_memory_embeddings.sql. Lists of different lengths are no array of arrays: they come as
-- text.
UPDATE annals.memories AS m
SET terms = fresh.terms::integer[], term_weights = fresh.term_weights
FROM unnest(%(memory_id)s::uuid[], %(version)s::integer[], %(terms)s::text[],
            %(term_weights)s::bytea[]) AS fresh (memory_id, version, terms, term_weights)
WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = fresh.memory_id AND m.version = fresh.version
  AND (m.terms, m.term_weights) IS DISTINCT FROM (fresh.terms::integer[], fresh.term_weights)
