SELECT search_id, kind, query, conversation_id, hit_count, top_score, search_time_ms,
       api_key_id, user_id, session_id, created_at
FROM annals.search_log
WHERE tenant_id = %(tenant_id)s
  AND (%(conversation_id)s::uuid IS NULL OR conversation_id = %(conversation_id)s)
  AND (%(start_time)s::timestamptz IS NULL OR created_at >= %(start_time)s)
  AND (%(end_time)s::timestamptz IS NULL OR created_at < %(end_time)s)
  AND (%(cursor_id)s::uuid IS NULL
       OR (created_at, search_id) < (%(cursor_time)s::timestamptz, %(cursor_id)s))
ORDER BY created_at DESC, search_id DESC
LIMIT %(limit)s
