-- Under erase_lock.sql. What is left of the event is its place: seq, branch, type, times.
WITH target AS MATERIALIZED (
  SELECT * FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s AND erased_at IS NULL
),
-- Of all its versions.
response AS MATERIALIZED (
  SELECT array_agg(id) AS ids FROM (
    SELECT provider_response_id AS id FROM target
    UNION ALL
    SELECT payload ->> 'provider_response_id' FROM annals.observation_payloads
    WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s
  ) AS version
),
emptied AS (
  UPDATE annals.events AS e
  SET role = NULL, content = NULL, author_name = NULL, tool_call_id = NULL, tool_name = NULL,
      tool_input = NULL, tool_result = NULL, is_error = false, error_type = NULL,
      error_message = NULL, model = NULL, provider_response_id = NULL, usage = NULL,
      parent_event_id = NULL, metadata = NULL, token_count = 0, turn_id = NULL,
      status = 'complete', superseded_by = NULL, origin_event_id = NULL, edited_at = NULL,
      cold_segment_id = NULL, erased_at = now()
  FROM target AS t
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = t.event_id
),
uncounted AS (
  UPDATE annals.conversations AS c
  SET event_count = c.event_count - (t.deleted_at IS NULL)::integer,
      message_count = c.message_count - (t.deleted_at IS NULL AND t.type = 'message')::integer,
      token_count = c.token_count - CASE WHEN t.deleted_at IS NULL THEN t.token_count ELSE 0 END,
      last_response_id = CASE WHEN c.last_response_id = ANY(r.ids) THEN ''
                              ELSE c.last_response_id END,
      version = c.version + 1, updated_at = now()
  FROM target AS t, response AS r
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = t.conversation_id
),
payloads AS (
  DELETE FROM annals.observation_payloads
  WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s
  RETURNING 1
),
gone_chunks AS (
  DELETE FROM annals.chunks WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s
  RETURNING 1
),
embedded AS MATERIALIZED (
  SELECT target_id FROM annals.relationships
  WHERE tenant_id = %(tenant_id)s AND type = 'embeds' AND source_kind = 'event'
    AND source_id = %(event_id)s::text AND target_kind = 'attachment'
),
gone_relationships AS (
  DELETE FROM annals.relationships
  WHERE tenant_id = %(tenant_id)s
    AND ((source_kind = 'event' AND source_id = %(event_id)s::text)
         OR (target_kind = 'event' AND target_id = %(event_id)s::text))
  RETURNING 1
),
-- What nothing else embeds was part of the event.
gone_attachments AS (
  DELETE FROM annals.attachments AS a
  USING embedded AS m, target AS t
  WHERE a.tenant_id = %(tenant_id)s AND a.attachment_id::text = m.target_id
    AND a.conversation_id = t.conversation_id
    AND NOT EXISTS (
      SELECT FROM annals.relationships AS r
      WHERE r.tenant_id = %(tenant_id)s AND r.type = 'embeds' AND r.target_kind = 'attachment'
        AND r.target_id = m.target_id AND r.source_id <> %(event_id)s::text)
  RETURNING 1
),
-- A logged request may quote any event of its conversation.
gone_logs AS (
  DELETE FROM annals.provider_logs AS l
  USING target AS t
  WHERE l.tenant_id = %(tenant_id)s AND l.conversation_id = t.conversation_id
  RETURNING 1
),
-- What is said of a range was said of the event too.
gone_summaries AS (
  DELETE FROM annals.summaries AS s
  USING target AS t
  WHERE s.tenant_id = %(tenant_id)s AND s.conversation_id = t.conversation_id
    AND s.first_seq <= t.seq AND s.last_seq >= t.seq
  RETURNING 1
),
-- So may a context.
gone_contexts AS (
  DELETE FROM annals.context_cache AS k
  USING target AS t
  WHERE k.tenant_id = %(tenant_id)s AND k.conversation_id = t.conversation_id
  RETURNING 1
),
gone_member AS (
  DELETE FROM annals.topic_members AS m
  USING target AS t
  WHERE m.tenant_id = %(tenant_id)s AND m.conversation_id = t.conversation_id AND m.seq = t.seq
  RETURNING m.topic_id
),
-- Its words may be in the label and the texts of its topic: they are made anew in the background.
gone_topic_texts AS (
  UPDATE annals.topics AS p
  SET label = '', summary = '[]', samples = '[]', event_count = greatest(0, p.event_count - 1)
  FROM gone_member AS m
  WHERE p.tenant_id = %(tenant_id)s AND p.topic_id = m.topic_id
  RETURNING 1
),
enqueued AS (
  INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id)
  SELECT tenant_id, 'event', event_id, conversation_id FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s
  ON CONFLICT (tenant_id, kind, key) DO UPDATE
  -- A lease is left alone: who holds it may still write, and then hands the key back.
  SET generation = outbox.generation + 1, attempts = 0, parked_at = NULL, last_error = NULL,
      priority = 0,
      available_at = CASE WHEN outbox.lease_owner IS NULL THEN now() ELSE outbox.available_at END
)
SELECT (SELECT count(*) FROM target) AS events,
       annals.erase_observations(ARRAY[%(event_id)s::uuid]) AS observations,
       (SELECT count(*) FROM payloads) AS observation_payloads,
       (SELECT count(*) FROM gone_chunks) AS chunks,
       (SELECT count(*) FROM gone_relationships) AS relationships,
       (SELECT count(*) FROM gone_attachments) AS attachments,
       (SELECT count(*) FROM gone_logs) AS provider_logs,
       (SELECT count(*) FROM gone_summaries) AS summaries,
       (SELECT count(*) FROM gone_contexts) AS cached_contexts,
       (SELECT count(*) FROM gone_topic_texts) AS topics
