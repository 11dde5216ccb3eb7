SELECT event_id, conversation_id, seq, type, role, content, author_name, tool_call_id, tool_name,
       tool_input, tool_result, is_error, error_type, error_message, token_count, event_time,
       created_at, model, provider_response_id, usage, parent_event_id, metadata
FROM annals.events
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  AND seq > %(after_seq)s AND seq < %(before_seq)s
  AND (%(start_time)s::timestamptz IS NULL OR event_time >= %(start_time)s)
  AND (%(end_time)s::timestamptz IS NULL OR event_time < %(end_time)s)
  AND (%(types)s::text[] IS NULL OR type = ANY(%(types)s))
  AND (%(roles)s::text[] IS NULL OR role = ANY(%(roles)s))
  AND (%(tool_names)s::text[] IS NULL OR tool_name = ANY(%(tool_names)s))
ORDER BY seq DESC
LIMIT %(limit)s
