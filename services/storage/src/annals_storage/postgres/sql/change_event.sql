-- Makes the next version of an event, under the lock of its conversation. The former one goes
-- into the history; NULL columns are left out of it.
WITH kept AS (
  INSERT INTO annals.observation_payloads (tenant_id, event_id, version, payload)
  SELECT e.tenant_id, e.event_id, e.version,
         (SELECT jsonb_object_agg(f.key, f.value)
          FROM jsonb_each(to_jsonb(e) - 'tenant_id') AS f WHERE f.value <> 'null'::jsonb)
  FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.seq = %(seq)s
),
changed AS (
  UPDATE annals.events
  SET role = %(role)s, content = %(content)s, author_name = %(author_name)s,
      tool_call_id = %(tool_call_id)s, tool_name = %(tool_name)s, tool_input = %(tool_input)s,
      tool_result = %(tool_result)s, is_error = %(is_error)s, error_type = %(error_type)s,
      error_message = %(error_message)s, model = %(model)s,
      provider_response_id = %(provider_response_id)s, usage = %(usage)s,
      parent_event_id = %(parent_event_id)s, metadata = %(metadata)s,
      token_count = %(token_count)s, event_time = %(event_time)s, status = %(status)s,
      version = %(version)s, edited_at = %(now)s
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND seq = %(seq)s
  RETURNING *
),
observed AS (
  INSERT INTO annals.observations
    (tenant_id, event_id, version, conversation_id, kind, idempotency_key, payload_hash,
     created_at, api_key_id, user_id, session_id)
  VALUES
    (%(tenant_id)s, %(event_id)s, %(version)s, %(conversation_id)s, %(kind)s,
     %(idempotency_key)s, %(payload_hash)s, %(now)s, %(api_key_id)s, %(user_id)s, %(session_id)s)
),
counted AS (
  UPDATE annals.conversations
  SET token_count = token_count + %(more_tokens)s,
      last_response_id = coalesce(%(new_response_id)s, last_response_id),
      version = version + 1, updated_at = %(now)s
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
),
queued AS (
  INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
  VALUES (%(tenant_id)s, 'event', %(event_id)s, %(conversation_id)s)
  ON CONFLICT (tenant_id, kind, key) DO UPDATE
  SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
      priority = 0,
      available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
)
SELECT * FROM changed
