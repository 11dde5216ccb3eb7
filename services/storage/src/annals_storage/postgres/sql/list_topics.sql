-- Topics of a conversation, the largest first. On the branch that was current when they were counted
-- their figures are at hand, on another one they are counted now.
WITH asked AS MATERIALIZED (
  SELECT CASE WHEN %(branch)s::integer IS NULL THEN c.current_branch ELSE %(branch)s END AS branch,
         r.branch AS counted_branch
  FROM annals.conversations AS c
  LEFT JOIN annals.topic_runs AS r
    ON r.tenant_id = c.tenant_id AND r.conversation_id = c.conversation_id
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
),
live AS (
  SELECT m.topic_id, count(*) AS event_count, min(m.event_time) AS first_at,
         max(m.event_time) AS last_at
  FROM asked AS a
  CROSS JOIN LATERAL annals.branch_view(%(tenant_id)s, %(conversation_id)s, a.branch) AS v
  JOIN annals.topic_members AS m
    ON m.tenant_id = %(tenant_id)s AND m.conversation_id = %(conversation_id)s
   AND m.branch = v.branch AND m.seq > v.after_seq AND m.seq <= v.until_seq
  WHERE a.branch IS DISTINCT FROM a.counted_branch AND m.topic_id IS NOT NULL
  GROUP BY m.topic_id
),
chosen AS MATERIALIZED (
  SELECT t.topic_id, t.event_count, t.first_at, t.last_at
  FROM asked AS a
  JOIN annals.topics AS t
    ON t.tenant_id = %(tenant_id)s AND t.conversation_id = %(conversation_id)s
  WHERE a.branch = a.counted_branch AND t.event_count > 0
    AND (%(topic_id)s::uuid IS NULL OR t.topic_id = %(topic_id)s)
  UNION ALL
  SELECT * FROM live WHERE %(topic_id)s::uuid IS NULL OR topic_id = %(topic_id)s
  ORDER BY event_count DESC, topic_id LIMIT %(limit)s
)
SELECT t.topic_id, t.conversation_id, t.label, t.centroid, t.embedding_model, n.event_count,
       n.first_at, n.last_at, x.summary, x.samples,
       x.lines < jsonb_array_length(t.summary) + jsonb_array_length(t.samples) OR t.label = ''
         AS is_stale
FROM chosen AS n
JOIN annals.topics AS t ON t.tenant_id = %(tenant_id)s AND t.topic_id = n.topic_id
CROSS JOIN LATERAL (
  SELECT coalesce(array_agg(l.text ORDER BY l.place) FILTER (WHERE l.part = 0), '{}') AS summary,
         coalesce(array_agg(l.text ORDER BY l.place) FILTER (WHERE l.part = 1), '{}') AS samples,
         count(l.text) AS lines
  FROM (
    SELECT s.part, j.place, j.line ->> 'text' AS text
    FROM (VALUES (0, t.summary), (1, t.samples)) AS s (part, texts)
    CROSS JOIN LATERAL jsonb_array_elements(s.texts) WITH ORDINALITY AS j (line, place)
    CROSS JOIN LATERAL (
      SELECT FROM annals.events AS e
      WHERE e.tenant_id = %(tenant_id)s AND e.event_id = (j.line ->> 'event_id')::uuid
        AND e.version = (j.line ->> 'version')::integer
        AND e.deleted_at IS NULL AND e.erased_at IS NULL
      LIMIT 1
    ) AS present
  ) AS l
) AS x
ORDER BY n.event_count DESC, t.topic_id
