-- Words of chunks and memories, for searches while the vector engine does not answer.
--
-- `terms`: what the sparse encoder found, as keys of the tenant (domain/lexical.py): equal words of
-- two tenants have different keys, so that a list of the index is one tenant's. `term_weights`: one
-- byte a term, in hundredths. NULL: of a version that did not keep them.
SET LOCAL search_path = annals;

ALTER TABLE chunks ADD COLUMN terms integer[], ADD COLUMN term_weights bytea;
ALTER TABLE memories ADD COLUMN terms integer[], ADD COLUMN term_weights bytea;

-- The generation of which PostgreSQL holds everything while the vector engine is still to get it.
ALTER TABLE outbox ADD COLUMN held_generation bigint;

CREATE INDEX chunks_by_terms ON chunks USING gin (terms) WITH (fastupdate = off);
CREATE INDEX chunks_by_conversation ON chunks (tenant_id, conversation_id);
CREATE INDEX memories_by_terms ON memories USING gin (terms) WITH (fastupdate = off);

-- No operator that an index on arrays knows is leakproof, so under a policy none is used. These
-- functions look into the index as the owner, for the tenant of the transaction alone, and return
-- ids with scores: who calls them joins those with tables under the policies of its own.
CREATE POLICY owner_searches ON chunks FOR SELECT TO CURRENT_USER USING (true);
CREATE POLICY owner_searches ON memories FOR SELECT TO CURRENT_USER USING (true);

-- Chunks with any of these terms, best first: the sum of idf x weight over the terms they
-- have. What is looked at is bounded. How frequent a term is, is counted up to 1,000 rows or, where
-- the first 1,000 rows of the tenant have it 10 times, estimated from those. Within conversations
-- every term leads to rows, else the rarest do, as many as lead to p_max rows together; the others
-- only count where those have led. At most p_max rows are weighed.
CREATE FUNCTION lexical_chunks(p_terms integer[], p_conversations uuid[], p_max integer)
  RETURNS TABLE (chunk_id uuid, event_id uuid, chunk_index integer, score double precision)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  WITH size AS MATERIALIZED (
    SELECT count(*) AS rows FROM (
      SELECT FROM chunks AS c WHERE c.tenant_id = current_tenant() LIMIT 100000
    ) AS few
  ),
  sampled AS MATERIALIZED (
    SELECT t.term, count(*) AS rows
    FROM (
      SELECT c.terms FROM chunks AS c WHERE c.tenant_id = current_tenant()
      ORDER BY c.chunk_id LIMIT 1000
    ) AS c
    CROSS JOIN LATERAL unnest(c.terms) AS own (term)
    JOIN unnest(p_terms) AS t (term) USING (term)
    GROUP BY t.term
  ),
  counted AS MATERIALIZED (
    SELECT t.term,
           greatest(f.rows, coalesce(s.rows, 0) * n.rows / least(n.rows, 1000)) AS rows
    FROM unnest(p_terms) AS t (term)
    CROSS JOIN size AS n
    LEFT JOIN sampled AS s USING (term)
    CROSS JOIN LATERAL (
      SELECT count(*) AS rows FROM (
        SELECT FROM chunks AS c
        WHERE c.tenant_id = current_tenant() AND c.terms @> ARRAY[t.term]
          AND coalesce(s.rows, 0) < 10
        LIMIT 1000
      ) AS few
    ) AS f
    WHERE n.rows > 0
  ),
  asked AS MATERIALIZED (
    SELECT c.term, c.rows, ln(1 + (greatest(n.rows - c.rows, 0) + 0.5) / (c.rows + 0.5)) AS idf,
           sum(c.rows) OVER (ORDER BY c.rows, c.term) AS rows_so_far
    FROM counted AS c CROSS JOIN size AS n
    WHERE c.rows > 0
  ),
  leads AS MATERIALIZED (
    SELECT array_agg(a.term) AS terms FROM asked AS a
    WHERE p_conversations IS NOT NULL OR a.rows_so_far <= p_max OR a.rows_so_far = a.rows
  ),
  found AS (
    (SELECT c.chunk_id, c.event_id, c.chunk_index, c.terms, c.term_weights
     FROM chunks AS c
     WHERE p_conversations IS NULL AND c.tenant_id = current_tenant()
       AND c.terms && (SELECT l.terms FROM leads AS l)
     LIMIT p_max)
    UNION ALL
    (SELECT c.chunk_id, c.event_id, c.chunk_index, c.terms, c.term_weights
     FROM chunks AS c
     WHERE c.tenant_id = current_tenant() AND c.conversation_id = ANY(p_conversations)
       AND c.terms && (SELECT l.terms FROM leads AS l)
     LIMIT p_max)
  )
  SELECT f.chunk_id, f.event_id, f.chunk_index, s.score
  FROM found AS f
  CROSS JOIN LATERAL (
    SELECT sum(a.idf * get_byte(f.term_weights, array_position(f.terms, a.term) - 1) / 100)
    FROM asked AS a WHERE a.term = ANY(f.terms)
  ) AS s (score)
  ORDER BY s.score DESC, f.chunk_id DESC;
END;

-- The same of memories.
CREATE FUNCTION lexical_memories(p_terms integer[], p_conversations uuid[], p_max integer)
  RETURNS TABLE (memory_id uuid, score double precision)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = annals, pg_temp
BEGIN ATOMIC
  WITH size AS MATERIALIZED (
    SELECT count(*) AS rows FROM (
      SELECT FROM memories AS c WHERE c.tenant_id = current_tenant() LIMIT 100000
    ) AS few
  ),
  sampled AS MATERIALIZED (
    SELECT t.term, count(*) AS rows
    FROM (
      SELECT c.terms FROM memories AS c WHERE c.tenant_id = current_tenant()
      ORDER BY c.memory_id LIMIT 1000
    ) AS c
    CROSS JOIN LATERAL unnest(c.terms) AS own (term)
    JOIN unnest(p_terms) AS t (term) USING (term)
    GROUP BY t.term
  ),
  counted AS MATERIALIZED (
    SELECT t.term,
           greatest(f.rows, coalesce(s.rows, 0) * n.rows / least(n.rows, 1000)) AS rows
    FROM unnest(p_terms) AS t (term)
    CROSS JOIN size AS n
    LEFT JOIN sampled AS s USING (term)
    CROSS JOIN LATERAL (
      SELECT count(*) AS rows FROM (
        SELECT FROM memories AS c
        WHERE c.tenant_id = current_tenant() AND c.terms @> ARRAY[t.term]
          AND coalesce(s.rows, 0) < 10
        LIMIT 1000
      ) AS few
    ) AS f
    WHERE n.rows > 0
  ),
  asked AS MATERIALIZED (
    SELECT c.term, c.rows, ln(1 + (greatest(n.rows - c.rows, 0) + 0.5) / (c.rows + 0.5)) AS idf,
           sum(c.rows) OVER (ORDER BY c.rows, c.term) AS rows_so_far
    FROM counted AS c CROSS JOIN size AS n
    WHERE c.rows > 0
  ),
  leads AS MATERIALIZED (
    SELECT array_agg(a.term) AS terms FROM asked AS a
    WHERE p_conversations IS NOT NULL OR a.rows_so_far <= p_max OR a.rows_so_far = a.rows
  ),
  found AS (
    (SELECT c.memory_id, c.terms, c.term_weights
     FROM memories AS c
     WHERE p_conversations IS NULL AND c.tenant_id = current_tenant()
       AND c.terms && (SELECT l.terms FROM leads AS l)
     LIMIT p_max)
    UNION ALL
    (SELECT c.memory_id, c.terms, c.term_weights
     FROM memories AS c
     WHERE c.tenant_id = current_tenant() AND c.conversation_id = ANY(p_conversations)
       AND c.terms && (SELECT l.terms FROM leads AS l)
     LIMIT p_max)
  )
  SELECT f.memory_id, s.score
  FROM found AS f
  CROSS JOIN LATERAL (
    SELECT sum(a.idf * get_byte(f.term_weights, array_position(f.terms, a.term) - 1) / 100)
    FROM asked AS a WHERE a.term = ANY(f.terms)
  ) AS s (score)
  ORDER BY s.score DESC, f.memory_id DESC;
END;

REVOKE ALL ON FUNCTION lexical_chunks, lexical_memories FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lexical_chunks, lexical_memories TO annals_app;
