UPDATE annals.conversations
SET status = CASE WHEN status = 'archived' THEN status ELSE 'completed' END,
    ended_at = coalesce(ended_at, now()),
    end_summary = coalesce(%(summary)s::text, end_summary), version = version + 1, updated_at = now()
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND deleted_at IS NULL
  AND (status = 'active' OR %(summary)s::text IS NOT NULL)
RETURNING conversation_id, agent_id, user_id, session_id, title, status, client_context, metadata,
       end_summary, next_seq - 1 AS last_seq, event_count, message_count, token_count, version,
       created_at, updated_at, last_event_at, active_at, ended_at, deleted_at,
       host_id, org_id, provider_conversation_id, last_response_id, current_branch, branch_count,
       memory_count, forked_from_conversation_id, forked_from_event_id, forked_from_seq, archived_at
