-- The best chunks of a scope by their words, looked up by lexical_chunks. Everything else is
-- decided here, under the policies of the caller: rows of another tenant have no event here. Chunks
-- come best first and are looked at until enough are in the scope.
--
-- Conversations of one user or session are looked up first, unless there are too many: within
-- conversations frequent words find more.
WITH owned AS MATERIALIZED (
  SELECT array_agg(c.conversation_id) AS ids, count(*) AS rooms
  FROM (
    SELECT c.conversation_id FROM annals.conversations AS c
    WHERE c.tenant_id = %(tenant_id)s AND %(conversation_ids)s::uuid[] IS NULL
      AND c.user_id = %(user_id)s::text
    UNION ALL
    SELECT c.conversation_id FROM annals.conversations AS c
    WHERE c.tenant_id = %(tenant_id)s AND %(conversation_ids)s::uuid[] IS NULL
      AND %(user_id)s::text IS NULL AND c.session_id = %(session_id)s::text
    LIMIT 1001
  ) AS c
),
rooms AS MATERIALIZED (
  SELECT CASE WHEN %(user_id)s::text IS NULL AND %(session_id)s::text IS NULL
                OR %(conversation_ids)s::uuid[] IS NOT NULL THEN %(conversation_ids)s::uuid[]
              WHEN o.rooms <= 1000 THEN coalesce(o.ids, '{}') END AS ids
  FROM owned AS o
)
SELECT m.chunk_id, m.event_id, e.conversation_id, e.seq, m.chunk_index, m.score
FROM rooms AS r
CROSS JOIN LATERAL annals.lexical_chunks(%(terms)s::integer[], r.ids, %(max_rows)s::integer) AS m
CROSS JOIN LATERAL (
  SELECT FROM annals.chunks AS k
  WHERE k.tenant_id = %(tenant_id)s AND k.chunk_id = m.chunk_id
    AND k.embedding_model = %(embedding_model)s LIMIT 1
) AS k
CROSS JOIN LATERAL (
  SELECT * FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = m.event_id LIMIT 1
) AS e
CROSS JOIN LATERAL (
  SELECT agent_id, user_id, session_id, deleted_at, current_branch, branch_count
  FROM annals.conversations AS c
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
WHERE c.deleted_at IS NULL AND e.deleted_at IS NULL AND e.erased_at IS NULL
  AND (%(conversation_ids)s::uuid[] IS NULL OR e.conversation_id = ANY(%(conversation_ids)s::uuid[]))
  AND (%(agent_ids)s::uuid[] IS NULL OR c.agent_id = ANY(%(agent_ids)s::uuid[]))
  AND (%(user_id)s::text IS NULL OR c.user_id = %(user_id)s::text)
  AND (%(session_id)s::text IS NULL OR c.session_id = %(session_id)s::text)
  AND (%(types)s::text[] IS NULL OR e.type = ANY(%(types)s::text[]))
  AND (%(roles)s::text[] IS NULL OR e.role = ANY(%(roles)s::text[]))
  AND (%(tool_names)s::text[] IS NULL OR e.tool_name = ANY(%(tool_names)s::text[]))
  AND (%(start_time)s::timestamptz IS NULL OR e.event_time >= %(start_time)s::timestamptz)
  AND (%(end_time)s::timestamptz IS NULL OR e.event_time < %(end_time)s::timestamptz)
  AND (%(event_ids)s::uuid[] IS NULL OR e.event_id = ANY(%(event_ids)s::uuid[]))
  AND (%(exclude_event_ids)s::uuid[] IS NULL OR e.event_id <> ALL(%(exclude_event_ids)s::uuid[]))
  AND CASE WHEN %(all_branches)s OR c.branch_count = 1 THEN true ELSE EXISTS (
    SELECT FROM annals.branch_view(
      %(tenant_id)s, e.conversation_id, coalesce(%(branch)s::integer, c.current_branch)) AS v
    WHERE v.branch = e.branch AND v.after_seq < e.seq AND e.seq <= v.until_seq
  ) END
LIMIT %(limit)s
