SELECT e.event_id, e.conversation_id, e.seq, e.type, e.role, e.content, e.author_name,
       e.tool_call_id, e.tool_name, e.tool_input, e.tool_result, e.is_error, e.error_type,
       e.error_message, e.token_count, e.event_time, e.created_at, e.model,
       e.provider_response_id, e.usage, e.parent_event_id, e.metadata,
       c.deleted_at IS NOT NULL AS deleted, c.agent_id, c.user_id, c.session_id
FROM annals.events AS e
CROSS JOIN LATERAL (
  SELECT deleted_at, agent_id, user_id, session_id FROM annals.conversations AS c
  WHERE c.tenant_id = e.tenant_id AND c.conversation_id = e.conversation_id LIMIT 1
) AS c
WHERE e.tenant_id = %(tenant_id)s AND e.event_id = ANY(%(event_ids)s)
