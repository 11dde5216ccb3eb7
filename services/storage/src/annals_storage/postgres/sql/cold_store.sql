-- Takes the words out of events that are as they were read. Under append_lock.sql.
WITH moved AS (
  UPDATE annals.events AS e
  SET content = NULL, tool_input = NULL, tool_result = NULL, error_message = NULL,
      metadata = NULL, cold_segment_id = %(segment_id)s
  FROM unnest(%(event_ids)s::uuid[], %(versions)s::integer[]) AS m (event_id, version)
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = m.event_id AND e.version = m.version
    AND e.conversation_id = %(conversation_id)s
    AND e.cold_segment_id IS NULL AND e.erased_at IS NULL
  RETURNING 1
),
noted AS (
  UPDATE annals.conversations SET cold_until_seq = greatest(cold_until_seq, %(last_seq)s)
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
),
stored AS (
  INSERT INTO annals.cold_segments
    (tenant_id, segment_id, conversation_id, first_seq, last_seq, event_count, path, sha256,
     stored_bytes)
  VALUES (%(tenant_id)s, %(segment_id)s, %(conversation_id)s, %(first_seq)s, %(last_seq)s,
          %(event_count)s, %(path)s, %(sha256)s, %(stored_bytes)s)
)
SELECT count(*) AS moved FROM moved
