SELECT conversation_id, agent_id, user_id, session_id, title, status, client_context, metadata,
       end_summary, next_seq - 1 AS last_seq, event_count, message_count, token_count, version,
       created_at, updated_at, last_event_at, active_at, ended_at, deleted_at
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s
  AND (%(agent_id)s::uuid IS NULL OR agent_id = %(agent_id)s)
  AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
  AND (%(statuses)s::text[] IS NULL OR status = ANY(%(statuses)s))
  AND (%(active_after)s::timestamptz IS NULL OR active_at >= %(active_after)s)
  AND (%(active_before)s::timestamptz IS NULL OR active_at < %(active_before)s)
  AND (%(show_deleted)s OR deleted_at IS NULL)
  AND (%(cursor_id)s::uuid IS NULL
       OR (active_at, conversation_id) < (%(cursor_time)s, %(cursor_id)s))
ORDER BY active_at DESC, conversation_id DESC
LIMIT %(limit)s
