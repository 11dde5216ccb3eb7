-- A NULL flag leaves its column alone. No row comes back when the conversation is gone or its
-- version has moved on.
UPDATE annals.conversations
SET agent_id = CASE WHEN %(set_agent_id)s THEN %(agent_id)s ELSE agent_id END,
    user_id = CASE WHEN %(set_user_id)s THEN %(user_id)s ELSE user_id END,
    session_id = CASE WHEN %(set_session_id)s THEN %(session_id)s ELSE session_id END,
    org_id = CASE WHEN %(set_org_id)s THEN %(org_id)s ELSE org_id END,
    provider_conversation_id = CASE WHEN %(set_provider_conversation_id)s
                                    THEN %(provider_conversation_id)s
                                    ELSE provider_conversation_id END,
    last_response_id = CASE WHEN %(set_last_response_id)s THEN %(last_response_id)s
                            ELSE last_response_id END,
    title = CASE WHEN %(set_title)s THEN %(title)s ELSE title END,
    status = CASE WHEN %(set_status)s THEN %(status)s ELSE status END,
    ended_at = CASE WHEN NOT %(set_status)s THEN ended_at
                    WHEN %(status)s = 'active' THEN NULL
                    ELSE coalesce(ended_at, now()) END,
    archived_at = CASE WHEN NOT %(set_status)s THEN archived_at
                       WHEN %(status)s = 'archived' THEN coalesce(archived_at, now()) END,
    client_context = CASE WHEN %(set_client_context)s THEN %(client_context)s ELSE client_context END,
    metadata = CASE WHEN %(set_metadata)s THEN %(metadata)s ELSE metadata END,
    version = version + 1, updated_at = now()
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND deleted_at IS NULL
  AND (%(expected_version)s::bigint IS NULL OR version = %(expected_version)s)
RETURNING conversation_id, agent_id, user_id, session_id, title, status, client_context, metadata,
       end_summary, next_seq - 1 AS last_seq, event_count, message_count, token_count, version,
       created_at, updated_at, last_event_at, active_at, ended_at, deleted_at,
       host_id, org_id, provider_conversation_id, last_response_id, current_branch, branch_count,
       memory_count, forked_from_conversation_id, forked_from_event_id, forked_from_seq, archived_at
