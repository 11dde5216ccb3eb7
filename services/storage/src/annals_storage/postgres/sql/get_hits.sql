-- Hits of the mirror, read back. Stale, deleted and foreign ones fall out here, and what is not
-- in view: on %(branch)s, else on the current branch. Without branches everything is in view and
-- no view is looked up. Lookups are LATERAL with LIMIT: one probe of an index each, also while a
-- table has no statistics yet.
SELECT e.*,
       hit.chunk_index, k.start_char, k.end_char, c.agent_id, c.user_id, c.session_id
FROM unnest(%(event_ids)s::uuid[], %(chunk_indexes)s::integer[]) AS hit (event_id, chunk_index)
CROSS JOIN LATERAL (
  SELECT * FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = hit.event_id LIMIT 1
) AS e
CROSS JOIN LATERAL (
  SELECT agent_id, user_id, session_id, deleted_at, current_branch, branch_count
  FROM annals.conversations AS c
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
CROSS JOIN LATERAL (
  SELECT start_char, end_char FROM annals.chunks AS k
  WHERE k.tenant_id = %(tenant_id)s AND k.event_id = hit.event_id
    AND k.chunk_index = hit.chunk_index
  -- Two, while one model takes the place of another; any is better than none.
  ORDER BY k.embedding_model IS DISTINCT FROM %(embedding_model)s::text LIMIT 1
) AS k
WHERE c.deleted_at IS NULL AND e.deleted_at IS NULL AND e.erased_at IS NULL
  AND CASE WHEN %(all_branches)s OR c.branch_count = 1 THEN true ELSE EXISTS (
    SELECT FROM annals.branch_view(
      %(tenant_id)s, e.conversation_id, coalesce(%(branch)s::integer, c.current_branch)) AS v
    WHERE v.branch = e.branch AND v.after_seq < e.seq AND e.seq <= v.until_seq
  ) END
