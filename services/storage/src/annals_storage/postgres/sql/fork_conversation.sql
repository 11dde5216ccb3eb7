-- The new conversation, still empty. No row when its id is taken, or without the old one.
INSERT INTO annals.conversations
  (tenant_id, conversation_id, agent_id, org_id, user_id, session_id, title, client_context,
   metadata, forked_from_conversation_id)
SELECT tenant_id, %(new_conversation_id)s, agent_id, org_id, user_id, session_id,
       coalesce(%(title)s, title), client_context, metadata, conversation_id
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND deleted_at IS NULL
ON CONFLICT DO NOTHING
RETURNING conversation_id
