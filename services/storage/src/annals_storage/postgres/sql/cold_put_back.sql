-- Puts the words of a segment back and forgets the segment. Under append_lock.sql.
WITH restored AS (
  UPDATE annals.events AS e
  SET content = w.content, tool_input = w.tool_input, tool_result = w.tool_result,
      error_message = w.error_message, metadata = w.metadata::jsonb, cold_segment_id = NULL
  FROM json_to_recordset(%(words)s::json) AS w (
    event_id uuid, content text, tool_input text, tool_result text, error_message text,
    metadata text)
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = w.event_id
    AND e.cold_segment_id = %(segment_id)s
  RETURNING 1
),
noted AS (
  UPDATE annals.conversations SET cold_until_seq = least(cold_until_seq, %(first_seq)s::bigint - 1)
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
),
forgotten AS (
  DELETE FROM annals.cold_segments
  WHERE tenant_id = %(tenant_id)s AND segment_id = %(segment_id)s
)
SELECT count(*) AS restored FROM restored
