-- Stores the events of several appends of one tenant, each append all or none. Runs under the
-- locks of append_lock.sql. Returns one row per append with its verdict and, for verdicts
-- 'stored' and 'replayed', one row per event.
--
-- Lookups are LATERAL with LIMIT: each is one probe of an index by its full key, whatever the
-- planner believes of the sizes of the tables.
WITH request AS MATERIALIZED (
  SELECT r.*, c.conversation_id IS NOT NULL AS known, c.deleted_at, c.status,
         coalesce(c.next_seq, 1) AS next_seq,
         coalesce(r.asked_branch, c.current_branch, 1) AS branch,
         coalesce(r.bulk, false)::integer AS priority
  FROM json_to_recordset(%(requests)s::json) AS r (
    index integer, conversation_id uuid, request_id uuid, payload_hash bytea,
    expected_last_seq bigint, anonymous boolean, agent_id uuid, session_id text,
    asked_branch integer, actor_key_id uuid, actor_user_id text, actor_session_id text,
    bulk boolean)
  LEFT JOIN LATERAL (
    SELECT * FROM annals.conversations AS c
    WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = r.conversation_id LIMIT 1
  ) AS c ON true
),
item AS MATERIALIZED (
  SELECT e.*, r.conversation_id
  FROM json_to_recordset(%(events)s::json) AS e (
    request integer, position integer, event_id uuid, supplied boolean, idempotency_key text,
    payload_hash bytea, type text, role text, content text, author_name text, tool_call_id text,
    tool_name text, tool_input text, tool_result text, is_error boolean, error_type text,
    error_message text, model text, provider_response_id text, usage jsonb,
    parent_event_id uuid, metadata jsonb, token_count integer, event_time timestamptz,
    status text, turn_id text)
  JOIN request AS r ON r.index = e.request
),
seen_request AS (
  SELECT r.index, a.payload_hash = r.payload_hash AS same, a.event_ids
  FROM request AS r
  CROSS JOIN LATERAL (
    SELECT * FROM annals.append_requests AS a
    WHERE a.tenant_id = %(tenant_id)s AND a.conversation_id = r.conversation_id
      AND a.request_id = r.request_id LIMIT 1
  ) AS a
  WHERE r.request_id IS NOT NULL
),
seen_key AS MATERIALIZED (
  SELECT i.request, i.position, o.event_id, o.payload_hash = i.payload_hash AS same
  FROM item AS i
  CROSS JOIN LATERAL (
    SELECT * FROM annals.observations AS o
    WHERE o.tenant_id = %(tenant_id)s AND o.conversation_id = i.conversation_id
      AND o.idempotency_key = i.idempotency_key LIMIT 1
  ) AS o
  WHERE i.idempotency_key IS NOT NULL
),
fresh_item AS MATERIALIZED (
  SELECT i.* FROM item AS i
  LEFT JOIN seen_key AS k ON k.request = i.request AND k.position = i.position
  WHERE k.position IS NULL
),
-- The call a tool result answers: earlier in the same append, else in the conversation.
answered AS MATERIALIZED (
  SELECT i.request, i.position, call.tool_name
  FROM fresh_item AS i
  CROSS JOIN LATERAL (
    SELECT b.tool_name, 0 AS source FROM item AS b
    WHERE b.request = i.request AND b.position < i.position AND b.type = 'tool_call'
      AND b.tool_call_id = i.tool_call_id
    UNION ALL
    SELECT e.tool_name, 1 FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = i.conversation_id
      AND e.tool_call_id = i.tool_call_id AND e.type = 'tool_call'
    ORDER BY source LIMIT 1
  ) AS call
  WHERE i.type = 'tool_result'
),
problem AS (
  SELECT k.request AS index, 'idempotency_key_reused' AS verdict, k.position, k.event_id
  FROM seen_key AS k WHERE NOT k.same
  UNION ALL
  SELECT i.request, 'event_exists', i.position, i.event_id
  FROM fresh_item AS i
  WHERE i.supplied AND EXISTS (
    SELECT FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.event_id = i.event_id)
  UNION ALL
  SELECT i.request, 'parent_not_found', i.position, i.parent_event_id
  FROM fresh_item AS i
  WHERE i.parent_event_id IS NOT NULL
    AND NOT EXISTS (
      SELECT FROM annals.events AS e
      WHERE e.tenant_id = %(tenant_id)s AND e.event_id = i.parent_event_id
        AND e.conversation_id = i.conversation_id)
    AND NOT EXISTS (
      SELECT FROM fresh_item AS b
      WHERE b.request = i.request AND b.position < i.position AND b.event_id = i.parent_event_id)
  UNION ALL
  SELECT i.request, 'tool_call_not_found', i.position, NULL
  FROM fresh_item AS i
  WHERE i.type = 'tool_result' AND NOT EXISTS (
    SELECT FROM answered AS a WHERE a.request = i.request AND a.position = i.position)
),
first_problem AS (
  SELECT DISTINCT ON (index) * FROM problem
  ORDER BY index, verdict <> 'idempotency_key_reused', position
),
verdict AS MATERIALIZED (
  SELECT r.*,
    CASE
      WHEN NOT r.known AND NOT r.anonymous THEN 'conversation_not_found'
      WHEN r.deleted_at IS NOT NULL THEN 'conversation_not_found'
      WHEN NOT s.same THEN 'request_id_reused'
      WHEN s.same THEN 'replayed'
      WHEN p.verdict = 'idempotency_key_reused' THEN p.verdict
      WHEN NOT EXISTS (SELECT FROM fresh_item AS f WHERE f.request = r.index) THEN 'replayed'
      WHEN r.asked_branch > 1 AND NOT EXISTS (
        SELECT FROM annals.branches AS b
        WHERE b.tenant_id = %(tenant_id)s AND b.conversation_id = r.conversation_id
          AND b.branch = r.asked_branch) THEN 'branch_not_found'
      WHEN r.status <> 'active' THEN 'conversation_not_active'
      WHEN r.expected_last_seq <> r.next_seq - 1 THEN 'seq_mismatch'
      WHEN r.anonymous AND NOT r.known AND r.agent_id IS NOT NULL AND NOT EXISTS (
        SELECT FROM annals.agents AS a
        WHERE a.tenant_id = %(tenant_id)s AND a.agent_id = r.agent_id) THEN 'agent_not_found'
      ELSE coalesce(p.verdict, 'stored')
    END AS verdict,
    p.position AS problem_position, p.event_id AS problem_event_id,
    s.event_ids AS replayed_ids
  FROM request AS r
  LEFT JOIN seen_request AS s ON s.index = r.index
  LEFT JOIN first_problem AS p ON p.index = r.index
),
numbered AS MATERIALIZED (
  SELECT i.*, coalesce(i.tool_name, a.tool_name) AS resolved_tool_name,
         v.branch, v.priority, v.actor_key_id, v.actor_user_id, v.actor_session_id,
         v.next_seq - 1 + row_number() OVER (
           PARTITION BY i.conversation_id ORDER BY i.request, i.position) AS seq
  FROM fresh_item AS i
  JOIN verdict AS v ON v.index = i.request AND v.verdict = 'stored'
  LEFT JOIN answered AS a ON a.request = i.request AND a.position = i.position
),
total AS MATERIALIZED (
  SELECT conversation_id, max(seq) AS last_seq, count(*) AS events,
         count(*) FILTER (WHERE type = 'message') AS messages, sum(token_count) AS tokens,
         (array_agg(provider_response_id ORDER BY seq DESC)
            FILTER (WHERE provider_response_id IS NOT NULL))[1] AS response_id
  FROM numbered GROUP BY conversation_id
),
insert_conversation AS (
  INSERT INTO annals.conversations
    (tenant_id, conversation_id, agent_id, session_id, next_seq, event_count, message_count,
     token_count, last_response_id, created_at, updated_at, last_event_at, active_at)
  SELECT %(tenant_id)s, v.conversation_id, v.agent_id, v.session_id, t.last_seq + 1, t.events,
         t.messages, t.tokens, coalesce(t.response_id, ''), %(now)s, %(now)s, %(now)s, %(now)s
  FROM verdict AS v JOIN total AS t USING (conversation_id)
  WHERE NOT v.known
),
update_conversation AS (
  UPDATE annals.conversations AS c
  SET next_seq = t.last_seq + 1, event_count = c.event_count + t.events,
      message_count = c.message_count + t.messages, token_count = c.token_count + t.tokens,
      last_response_id = coalesce(t.response_id, c.last_response_id),
      version = c.version + 1, updated_at = %(now)s, last_event_at = %(now)s, active_at = %(now)s
  FROM total AS t
  WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = ANY(%(conversation_ids)s)
    AND c.conversation_id = t.conversation_id
),
insert_event AS (
  INSERT INTO annals.events
    (tenant_id, conversation_id, seq, event_id, type, role, content, author_name, tool_call_id,
     tool_name, tool_input, tool_result, is_error, error_type, error_message, model,
     provider_response_id, usage, parent_event_id, metadata, token_count, event_time, created_at,
     branch, status, turn_id)
  SELECT %(tenant_id)s, conversation_id, seq, event_id, type, role, content, author_name,
         tool_call_id, resolved_tool_name, tool_input, tool_result, coalesce(is_error, false), error_type,
         error_message, model, provider_response_id, usage, parent_event_id, metadata,
         token_count, coalesce(event_time, %(now)s), %(now)s, branch,
         coalesce(status, 'complete'), turn_id
  FROM numbered
),
insert_observation AS (
  INSERT INTO annals.observations
    (tenant_id, event_id, version, conversation_id, kind, idempotency_key, payload_hash, created_at,
     api_key_id, user_id, session_id)
  SELECT %(tenant_id)s, event_id, 1, conversation_id, 'store', idempotency_key, payload_hash,
         %(now)s, actor_key_id, actor_user_id, actor_session_id
  FROM numbered
),
insert_outbox AS (
  INSERT INTO annals.outbox (tenant_id, kind, key, conversation_id, priority)
  SELECT %(tenant_id)s, 'event', event_id, conversation_id, priority FROM numbered
),
replay AS (
  SELECT k.request, k.position, k.event_id
  FROM seen_key AS k
  JOIN verdict AS v ON v.index = k.request AND v.verdict IN ('stored', 'replayed')
                   AND v.replayed_ids IS NULL
  UNION ALL
  SELECT v.index, replayed.position::integer - 1, replayed.event_id
  FROM verdict AS v
  CROSS JOIN LATERAL unnest(v.replayed_ids) WITH ORDINALITY AS replayed (event_id, position)
  WHERE v.verdict = 'replayed'
),
done AS MATERIALIZED (
  SELECT n.request, n.position, n.event_id, n.seq, false AS replayed, n.token_count,
         %(now)s::timestamptz AS created_at
  FROM numbered AS n
  UNION ALL
  SELECT r.request, r.position, r.event_id, e.seq, true,
         -- As it was stored: the oldest version, where there are newer ones.
         CASE WHEN e.version = 1 THEN e.token_count ELSE coalesce(
           (SELECT (p.payload->>'token_count')::integer FROM annals.observation_payloads AS p
            WHERE p.tenant_id = %(tenant_id)s AND p.event_id = r.event_id
            ORDER BY p.version LIMIT 1), e.token_count) END,
         e.created_at
  FROM replay AS r
  CROSS JOIN LATERAL (
    SELECT * FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.event_id = r.event_id LIMIT 1
  ) AS e
),
insert_request AS (
  INSERT INTO annals.append_requests
    (tenant_id, conversation_id, request_id, payload_hash, event_ids, created_at)
  SELECT %(tenant_id)s, v.conversation_id, v.request_id, v.payload_hash,
         array_agg(d.event_id ORDER BY d.position), %(now)s
  FROM verdict AS v JOIN done AS d ON d.request = v.index
  WHERE v.request_id IS NOT NULL AND v.verdict IN ('stored', 'replayed')
    AND v.replayed_ids IS NULL
  GROUP BY v.conversation_id, v.request_id, v.payload_hash
)
SELECT v.index, v.verdict, v.status, v.problem_position, v.problem_event_id,
       coalesce(t.last_seq, v.next_seq - 1) AS last_seq,
       d.position, d.event_id, d.seq, d.replayed, d.token_count, d.created_at
FROM verdict AS v
LEFT JOIN total AS t ON t.conversation_id = v.conversation_id
LEFT JOIN done AS d ON d.request = v.index
ORDER BY v.index, d.position
