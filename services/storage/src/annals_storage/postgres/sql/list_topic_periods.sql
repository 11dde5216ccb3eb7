-- Days with the number of events of every topic, of a branch. What was not looked at yet is missing.
WITH asked AS MATERIALIZED (
  SELECT CASE WHEN %(branch)s::integer IS NULL THEN c.current_branch ELSE %(branch)s END AS branch,
         r.branch AS counted_branch
  FROM annals.conversations AS c
  LEFT JOIN annals.topic_runs AS r
    ON r.tenant_id = c.tenant_id AND r.conversation_id = c.conversation_id
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
    AND c.deleted_at IS NULL
),
days AS (
  SELECT d.day, d.topic_id, d.event_count
  FROM asked AS a
  JOIN annals.topic_days AS d
    ON d.tenant_id = %(tenant_id)s AND d.conversation_id = %(conversation_id)s
  WHERE a.branch = a.counted_branch
  UNION ALL
  SELECT (m.event_time AT TIME ZONE 'UTC')::date,
         coalesce(m.topic_id, '00000000-0000-0000-0000-000000000000'), count(*)
  FROM asked AS a
  CROSS JOIN LATERAL annals.branch_view(%(tenant_id)s, %(conversation_id)s, a.branch) AS v
  JOIN annals.topic_members AS m
    ON m.tenant_id = %(tenant_id)s AND m.conversation_id = %(conversation_id)s
   AND m.branch = v.branch AND m.seq > v.after_seq AND m.seq <= v.until_seq
  WHERE a.branch IS DISTINCT FROM a.counted_branch
  GROUP BY 1, 2
),
newest AS (SELECT max(day) AS day FROM days)
-- Periods are those of the newest day: of its week, which begins on Monday, of its month, and older.
SELECT CASE WHEN d.day = n.day THEN 'today'
            WHEN d.day >= date_trunc('week', n.day)::date THEN 'this_week'
            WHEN d.day >= date_trunc('month', n.day)::date THEN 'this_month'
            ELSE 'older' END AS period,
       d.topic_id, coalesce(t.label, '') AS label, sum(d.event_count)::bigint AS event_count
FROM days AS d
CROSS JOIN newest AS n
LEFT JOIN annals.topics AS t ON t.tenant_id = %(tenant_id)s AND t.topic_id = d.topic_id
GROUP BY 1, 2, 3
ORDER BY 4 DESC, 2
