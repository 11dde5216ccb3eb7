-- The chunks of an event are replaced as a whole; ids repeat when the cut repeats, and a chunk
-- that repeats as a whole is left as it is. Those by other models in use are not concerned.
WITH fresh AS (
  SELECT * FROM unnest(
    %(chunk_id)s::uuid[], %(event_id)s::uuid[], %(conversation_id)s::uuid[],
    %(chunk_index)s::integer[], %(start_char)s::integer[], %(end_char)s::integer[],
    %(token_count)s::integer[], %(content_hash)s::bytea[], %(embedding)s::bytea[],
    %(embedding_model)s::text[], %(token_signs)s::bytea[],
    %(terms)s::text[], %(term_weights)s::bytea[]
  ) AS c (chunk_id, event_id, conversation_id, chunk_index, start_char, end_char, token_count,
          content_hash, embedding, embedding_model, token_signs, terms, term_weights)
),
stale AS (
  DELETE FROM annals.chunks AS c
  WHERE c.tenant_id = %(tenant_id)s AND c.event_id = ANY(%(event_ids)s)
    AND c.embedding_model <> ALL(%(other_models)s::text[])
    AND NOT EXISTS (SELECT FROM fresh AS f WHERE f.chunk_id = c.chunk_id)
)
INSERT INTO annals.chunks
  (tenant_id, chunk_id, event_id, conversation_id, chunk_index, start_char, end_char,
   token_count, content_hash, embedding, embedding_model, token_signs, terms, term_weights)
SELECT %(tenant_id)s, f.chunk_id, f.event_id, f.conversation_id, f.chunk_index, f.start_char,
       f.end_char, f.token_count, f.content_hash, f.embedding, f.embedding_model, f.token_signs,
       -- Lists of different lengths are no array of arrays: they come as text.
       f.terms::integer[], f.term_weights
FROM fresh AS f
-- What was erased while it was being cut and embedded is not stored: see chunk_lock.sql.
CROSS JOIN LATERAL (
  SELECT 1 FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = f.event_id AND e.erased_at IS NULL LIMIT 1
) AS present
ON CONFLICT (tenant_id, chunk_id) DO UPDATE
SET start_char = excluded.start_char, end_char = excluded.end_char,
    token_count = excluded.token_count, content_hash = excluded.content_hash,
    embedding = excluded.embedding, embedding_model = excluded.embedding_model,
    token_signs = excluded.token_signs, terms = excluded.terms,
    term_weights = excluded.term_weights
WHERE (chunks.content_hash, chunks.start_char, chunks.end_char, chunks.embedding_model,
       chunks.terms, chunks.term_weights)
      IS DISTINCT FROM (excluded.content_hash, excluded.start_char, excluded.end_char,
                        excluded.embedding_model, excluded.terms, excluded.term_weights)
   OR chunks.token_signs IS NULL
