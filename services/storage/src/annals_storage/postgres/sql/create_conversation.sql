-- No row comes back when the id or the request_id is taken; get_creation.sql then tells a
-- retry from a clash.
INSERT INTO annals.conversations
  (tenant_id, conversation_id, agent_id, user_id, session_id, title, client_context, metadata,
   request_id, creation_hash)
VALUES
  (%(tenant_id)s, %(conversation_id)s, %(agent_id)s, %(user_id)s, %(session_id)s, %(title)s,
   %(client_context)s, %(metadata)s, %(request_id)s,
   %(creation_hash)s)
ON CONFLICT DO NOTHING
RETURNING conversation_id, agent_id, user_id, session_id, title, status, client_context, metadata,
       end_summary, next_seq - 1 AS last_seq, event_count, message_count, token_count, version,
       created_at, updated_at, last_event_at, active_at, ended_at, deleted_at
