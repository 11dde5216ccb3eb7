-- Those that hold for a branch: its own and, of the branches it comes from, what ends where it has
-- not left them yet.
SELECT s.summary_id, s.conversation_id, s.branch, s.height, s.level, s.first_seq, s.last_seq,
       s.provider, s.model, s.token_count, s.quality_score, s.source_version, s.version,
       s.created_at, CASE WHEN %(with_text)s THEN s.body ELSE '' END AS body,
       CASE WHEN %(with_text)s THEN s.citations ELSE '[]' END AS citations
FROM annals.branch_view(%(tenant_id)s, %(conversation_id)s, %(branch)s) AS v
JOIN annals.summaries AS s
  ON s.tenant_id = %(tenant_id)s AND s.conversation_id = %(conversation_id)s
  AND s.branch = v.branch AND s.last_seq <= v.until_seq
WHERE s.stale_at IS NULL
  AND s.first_seq >= %(first_seq)s
  AND (%(last_seq)s::bigint IS NULL OR s.last_seq <= %(last_seq)s)
  AND (%(levels)s::text[] IS NULL OR s.level = ANY(%(levels)s))
  AND (%(heights)s::smallint[] IS NULL OR s.height = ANY(%(heights)s))
  AND (%(provider)s::text IS NULL OR s.provider = %(provider)s)
  AND (%(cursor_id)s::uuid IS NULL
       OR (s.first_seq, s.summary_id) > (%(cursor_seq)s::bigint, %(cursor_id)s))
ORDER BY s.first_seq, s.summary_id
LIMIT %(limit)s
