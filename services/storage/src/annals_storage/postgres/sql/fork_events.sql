-- Copies the events of some parts, numbered anew. Ids of copies are computed, so that those of
-- parents need no join. cold_count: copies that lack their words; the caller then rolls back.
-- What the events cost is not counted again: no usage.
WITH part AS MATERIALIZED (
  SELECT * FROM unnest(%(branches)s::integer[], %(afters)s::bigint[], %(untils)s::bigint[])
    AS part (branch, after_seq, until_seq)
),
source AS MATERIALIZED (
  SELECT e.*, row_number() OVER (ORDER BY e.seq) AS new_seq,
         annals.forked_event_id(%(new_conversation_id)s::uuid, e.event_id) AS new_event_id
  FROM part
  CROSS JOIN LATERAL (
    SELECT * FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
      AND e.branch = part.branch AND e.seq > part.after_seq AND e.seq <= part.until_seq
      AND e.deleted_at IS NULL AND e.erased_at IS NULL
  ) AS e
),
insert_event AS (
  INSERT INTO annals.events
    (tenant_id, conversation_id, seq, event_id, type, role, content, author_name, tool_call_id,
     tool_name, tool_input, tool_result, is_error, error_type, error_message, model,
     provider_response_id, usage, parent_event_id, metadata, token_count, event_time, created_at,
     turn_id, status, origin_event_id)
  SELECT s.tenant_id, %(new_conversation_id)s, s.new_seq, s.new_event_id, s.type, s.role,
         s.content, s.author_name, s.tool_call_id, s.tool_name, s.tool_input, s.tool_result,
         s.is_error, s.error_type, s.error_message, s.model, s.provider_response_id, s.usage,
         CASE WHEN s.parent_event_id IS NOT NULL AND EXISTS (
           SELECT FROM annals.events AS p JOIN part USING (branch)
           WHERE p.tenant_id = %(tenant_id)s AND p.event_id = s.parent_event_id
             AND p.conversation_id = %(conversation_id)s
             AND p.seq > part.after_seq AND p.seq <= part.until_seq
             AND p.deleted_at IS NULL AND p.erased_at IS NULL
         ) THEN annals.forked_event_id(%(new_conversation_id)s, s.parent_event_id) END,
         s.metadata, s.token_count, s.event_time, now(), s.turn_id, s.status, s.event_id
  FROM source AS s
),
insert_observation AS (
  INSERT INTO annals.observations
    (tenant_id, event_id, version, conversation_id, kind, payload_hash, created_at,
     api_key_id, user_id, session_id)
  SELECT s.tenant_id, s.new_event_id, 1, %(new_conversation_id)s, 'store', o.payload_hash, now(),
         %(actor_key_id)s::uuid, %(actor_user_id)s, %(actor_session_id)s
  FROM source AS s
  CROSS JOIN LATERAL (
    SELECT o.payload_hash FROM annals.observations AS o
    WHERE o.tenant_id = %(tenant_id)s AND o.event_id = s.event_id AND o.version = s.version LIMIT 1
  ) AS o
),
insert_outbox AS (
  INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, priority)
  SELECT tenant_id, 'event', new_event_id, %(new_conversation_id)s, 1 FROM source
),
total AS (
  SELECT count(*) AS events, count(*) FILTER (WHERE type = 'message') AS messages,
         coalesce(sum(token_count), 0) AS tokens, max(seq) AS last_seq,
         (array_agg(event_id ORDER BY seq DESC))[1] AS last_event_id,
         (array_agg(provider_response_id ORDER BY seq DESC)
            FILTER (WHERE provider_response_id IS NOT NULL))[1] AS response_id,
         count(*) FILTER (WHERE cold_segment_id IS NOT NULL) AS cold_count
  FROM source
)
UPDATE annals.conversations AS c
SET next_seq = t.events + 1, event_count = t.events, message_count = t.messages,
    token_count = t.tokens, last_response_id = coalesce(t.response_id, ''),
    forked_from_event_id = coalesce(%(event_id)s::uuid, t.last_event_id),
    forked_from_seq = coalesce(%(fork_seq)s::bigint, t.last_seq),
    last_event_at = CASE WHEN t.events > 0 THEN now() END
FROM total AS t
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(new_conversation_id)s
RETURNING t.events AS event_count, t.cold_count
