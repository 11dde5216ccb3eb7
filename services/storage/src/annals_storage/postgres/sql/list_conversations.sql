SELECT conversation_id, agent_id, user_id, session_id, title, status, client_context, metadata,
       end_summary, next_seq - 1 AS last_seq, event_count, message_count, token_count, version,
       created_at, updated_at, last_event_at, active_at, ended_at, deleted_at,
       host_id, org_id, provider_conversation_id, last_response_id, current_branch, branch_count,
       memory_count, forked_from_conversation_id, forked_from_event_id, forked_from_seq, archived_at
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s
  AND (%(org_id)s::text IS NULL OR org_id = %(org_id)s)
  AND (%(agent_id)s::uuid IS NULL OR agent_id = %(agent_id)s)
  AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
  AND (%(session_id)s::text IS NULL OR session_id = %(session_id)s)
  AND (%(statuses)s::text[] IS NULL OR status = ANY(%(statuses)s))
  AND (%(active_after)s::timestamptz IS NULL OR active_at >= %(active_after)s)
  AND (%(active_before)s::timestamptz IS NULL OR active_at < %(active_before)s)
  AND (NOT %(anonymous)s OR user_id IS NULL)
  AND (%(title_pattern)s::text IS NULL OR title ILIKE %(title_pattern)s)
  AND (%(metadata)s::jsonb IS NULL OR metadata @> %(metadata)s)
  AND (%(show_deleted)s OR deleted_at IS NULL)
  AND (%(cursor_id)s::uuid IS NULL
       OR (active_at, conversation_id) < (%(cursor_time)s, %(cursor_id)s))
ORDER BY active_at DESC, conversation_id DESC
LIMIT %(limit)s
