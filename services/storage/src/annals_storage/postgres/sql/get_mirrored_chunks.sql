-- Which of these chunks belong into the mirror, as list_mirrored.sql has it, with what the indexer
-- would write of them now: see get_indexable.sql. Lookups are LATERAL with LIMIT: see get_hits.sql.
SELECT k.chunk_id, k.event_id, k.chunk_index, k.content_hash, k.embedding_model,
       e.conversation_id, e.seq, e.branch, e.type, e.role, e.tool_name, e.event_time,
       CASE WHEN c.branch_count = 1 THEN true ELSE EXISTS (
         SELECT FROM annals.branch_view(%(tenant_id)s, e.conversation_id, c.current_branch) AS v
         WHERE v.branch = e.branch AND v.after_seq < e.seq AND e.seq <= v.until_seq
       ) END AS current,
       c.agent_id, c.user_id, c.session_id
FROM unnest(%(point_ids)s::uuid[]) AS wanted (chunk_id)
CROSS JOIN LATERAL (
  SELECT chunk_id, event_id, conversation_id, chunk_index, content_hash, embedding_model
  FROM annals.chunks AS k
  WHERE k.tenant_id = %(tenant_id)s AND k.chunk_id = wanted.chunk_id
    AND (%(embedding_model)s::text IS NULL OR k.embedding_model = %(embedding_model)s) LIMIT 1
) AS k
CROSS JOIN LATERAL (
  SELECT * FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = k.event_id LIMIT 1
) AS e
CROSS JOIN LATERAL (
  SELECT deleted_at, agent_id, user_id, session_id, current_branch, branch_count
  FROM annals.conversations AS c
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
WHERE c.deleted_at IS NULL AND e.deleted_at IS NULL AND e.erased_at IS NULL
