-- Hits of the mirror, read back. Stale, deleted and foreign ones fall out here.
SELECT e.event_id, e.conversation_id, e.seq, e.type, e.role, e.content, e.author_name,
       e.tool_call_id, e.tool_name, e.tool_input, e.tool_result, e.is_error, e.error_type,
       e.error_message, e.token_count, e.event_time, e.created_at, e.model,
       e.provider_response_id, e.usage, e.parent_event_id, e.metadata,
       k.start_char, k.end_char, c.agent_id, c.user_id, c.session_id
FROM unnest(%(event_ids)s::uuid[], %(chunk_indexes)s::integer[]) AS hit (event_id, chunk_index)
JOIN annals.events AS e
  ON e.tenant_id = %(tenant_id)s AND e.event_id = hit.event_id
JOIN annals.conversations AS c
  ON c.tenant_id = e.tenant_id AND c.conversation_id = e.conversation_id AND c.deleted_at IS NULL
JOIN annals.chunks AS k
  ON k.tenant_id = e.tenant_id AND k.event_id = e.event_id AND k.chunk_index = hit.chunk_index
