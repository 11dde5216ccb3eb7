-- Adds differences to the usage of a day; what comes to no event at all goes. Under the lock of
-- the conversation.
WITH difference AS MATERIALIZED (
  SELECT * FROM json_to_recordset(%(changes)s::json) AS d (
    model text, event_count bigint, input_tokens bigint, output_tokens bigint,
    cached_input_tokens bigint)
),
found AS MATERIALIZED (
  SELECT u.model, u.event_count + d.event_count <= 0 AS gone
  FROM annals.usage_daily AS u
  JOIN difference AS d USING (model)
  WHERE u.tenant_id = %(tenant_id)s AND u.conversation_id = %(conversation_id)s
    AND u.day = %(day)s
),
deleted AS (
  DELETE FROM annals.usage_daily AS u
  USING found AS f
  WHERE u.tenant_id = %(tenant_id)s AND u.conversation_id = %(conversation_id)s
    AND u.day = %(day)s AND u.model = f.model AND f.gone
),
updated AS (
  UPDATE annals.usage_daily AS u
  SET event_count = u.event_count + d.event_count,
      input_tokens = greatest(
        least(u.input_tokens::numeric + d.input_tokens, 9223372036854775807), 0),
      output_tokens = greatest(
        least(u.output_tokens::numeric + d.output_tokens, 9223372036854775807), 0),
      cached_input_tokens = greatest(
        least(u.cached_input_tokens::numeric + d.cached_input_tokens, 9223372036854775807), 0)
  FROM difference AS d
  JOIN found AS f ON f.model = d.model AND NOT f.gone
  WHERE u.tenant_id = %(tenant_id)s AND u.conversation_id = %(conversation_id)s
    AND u.day = %(day)s AND u.model = d.model
)
INSERT INTO annals.usage_daily
  (tenant_id, conversation_id, day, model, event_count, input_tokens, output_tokens,
   cached_input_tokens)
SELECT %(tenant_id)s, %(conversation_id)s, %(day)s, d.model, d.event_count, d.input_tokens,
       d.output_tokens, d.cached_input_tokens
FROM difference AS d
WHERE d.event_count > 0 AND d.model NOT IN (SELECT f.model FROM found AS f)
