-- No row comes back when an id or the request_id is taken; get_creation.sql then tells a
-- retry from a clash.
INSERT INTO annals.conversations
  (tenant_id, conversation_id, agent_id, user_id, session_id, title, client_context, metadata,
   request_id, creation_hash, host_id, org_id, provider_conversation_id)
VALUES
  (%(tenant_id)s, %(conversation_id)s, %(agent_id)s, %(user_id)s, %(session_id)s, %(title)s,
   %(client_context)s, %(metadata)s, %(request_id)s,
   %(creation_hash)s, %(host_id)s, %(org_id)s, %(provider_conversation_id)s)
ON CONFLICT DO NOTHING
RETURNING conversation_id, agent_id, user_id, session_id, title, status, client_context, metadata,
       end_summary, next_seq - 1 AS last_seq, event_count, message_count, token_count, version,
       created_at, updated_at, last_event_at, active_at, ended_at, deleted_at,
       host_id, org_id, provider_conversation_id, last_response_id, current_branch, branch_count,
       memory_count, forked_from_conversation_id, forked_from_event_id, forked_from_seq, archived_at
