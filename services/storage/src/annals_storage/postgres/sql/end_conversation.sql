UPDATE annals.conversations
SET status = 'completed', ended_at = coalesce(ended_at, now()),
    end_summary = coalesce(%(summary)s::text, end_summary), version = version + 1, updated_at = now()
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND deleted_at IS NULL
  AND (status <> 'completed' OR %(summary)s::text IS NOT NULL)
RETURNING conversation_id, agent_id, user_id, session_id, title, status, client_context, metadata,
       end_summary, next_seq - 1 AS last_seq, event_count, message_count, token_count, version,
       created_at, updated_at, last_event_at, active_at, ended_at, deleted_at
