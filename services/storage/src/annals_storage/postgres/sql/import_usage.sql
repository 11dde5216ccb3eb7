INSERT INTO annals.usage_daily
  (tenant_id, conversation_id, day, model, event_count, input_tokens, output_tokens,
   cached_input_tokens)
SELECT %(tenant_id)s, %(conversation_id)s, r.day, r.model, r.event_count, r.input_tokens,
       r.output_tokens, r.cached_input_tokens
FROM json_populate_recordset(NULL::annals.usage_daily, %(rows)s::json) AS r
