SELECT conversation_id, agent_id, user_id, session_id, title, status, client_context, metadata,
       end_summary, next_seq - 1 AS last_seq, event_count, message_count, token_count, version,
       created_at, updated_at, last_event_at, active_at, ended_at, deleted_at,
       host_id, org_id, provider_conversation_id, last_response_id, current_branch, branch_count,
       memory_count, forked_from_conversation_id, forked_from_event_id, forked_from_seq, archived_at
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
