WITH stored AS (
  INSERT INTO annals.events
    (tenant_id, conversation_id, seq, event_id, branch, type, role, content, author_name,
     tool_call_id, tool_name, tool_input, tool_result, is_error, error_type, error_message, model,
     provider_response_id, usage, parent_event_id, metadata, token_count, event_time, created_at,
     turn_id, status, version, edited_at, deleted_at, erased_at, superseded_by, origin_event_id)
  SELECT %(tenant_id)s, %(conversation_id)s, r.seq, r.event_id, r.branch, r.type, r.role,
         r.content, r.author_name, r.tool_call_id, r.tool_name, r.tool_input, r.tool_result,
         r.is_error, r.error_type, r.error_message, r.model, r.provider_response_id, r.usage,
         r.parent_event_id, r.metadata, r.token_count, r.event_time, r.created_at, r.turn_id,
         r.status, r.version, r.edited_at, r.deleted_at, r.erased_at, r.superseded_by,
         r.origin_event_id
  FROM json_populate_recordset(NULL::annals.events, %(rows)s::json) AS r
  RETURNING event_id, erased_at
)
INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, priority)
SELECT %(tenant_id)s, 'event', event_id, %(conversation_id)s, 1 FROM stored WHERE erased_at IS NULL
ON CONFLICT (tenant_id, kind, key) DO UPDATE
SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
    conversation_id = excluded.conversation_id,
    available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
