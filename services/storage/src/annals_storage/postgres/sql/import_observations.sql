-- Each row has the columns of observations and, where the event has changed since, `payload`: the
-- columns of events as they were.
WITH given AS MATERIALIZED (
  SELECT item, item -> 'payload' AS payload
  FROM json_array_elements(%(rows)s::json) AS item
),
stored AS (
  INSERT INTO annals.observations
    (tenant_id, event_id, version, conversation_id, kind, idempotency_key, payload_hash,
     api_key_id, user_id, session_id, created_at)
  SELECT %(tenant_id)s, r.event_id, r.version, %(conversation_id)s, r.kind, r.idempotency_key,
         r.payload_hash, r.api_key_id, r.user_id, r.session_id, r.created_at
  FROM given AS g
  CROSS JOIN LATERAL json_populate_record(NULL::annals.observations, g.item) AS r
)
INSERT INTO annals.observation_payloads (tenant_id, event_id, version, payload)
SELECT %(tenant_id)s, (g.item ->> 'event_id')::uuid, (g.item ->> 'version')::integer,
       (SELECT jsonb_object_agg(f.key, f.value)
        FROM jsonb_each(to_jsonb(e) || jsonb_build_object('conversation_id', %(conversation_id)s::uuid)
                        - 'tenant_id') AS f
        WHERE f.value <> 'null'::jsonb)
FROM given AS g
CROSS JOIN LATERAL json_populate_record(NULL::annals.events, g.payload) AS e
WHERE g.payload IS NOT NULL
