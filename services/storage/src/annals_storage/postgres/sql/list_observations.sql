-- One page of the history of an event, newest first. It ends after %(limit)s observations or when
-- it is full in bytes, but holds at least one. What an event was at a version is the nearest
-- payload from that version on, else the event as it is now.
WITH event AS MATERIALIZED (
  SELECT * FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s
),
page AS (
  SELECT o.version, o.kind, o.idempotency_key, o.created_at, o.api_key_id, o.user_id,
         o.session_id, p.version AS payload_version,
         coalesce(p.payload_bytes,
           coalesce(octet_length(e.content), 0) + coalesce(octet_length(e.tool_input), 0)
           + coalesce(octet_length(e.tool_result), 0) + coalesce(octet_length(e.error_message), 0)
           + coalesce(octet_length(e.metadata::text), 0)) + 256 AS bytes
  FROM event AS e
  CROSS JOIN LATERAL (
    SELECT * FROM annals.observations AS o
    WHERE o.tenant_id = %(tenant_id)s AND o.event_id = %(event_id)s
      AND o.version < %(before_version)s
    ORDER BY o.version DESC
    LIMIT %(limit)s::bigint + 1
  ) AS o
  LEFT JOIN LATERAL (
    SELECT p.version, p.payload_bytes FROM annals.observation_payloads AS p
    WHERE p.tenant_id = %(tenant_id)s AND p.event_id = %(event_id)s AND p.version >= o.version
    ORDER BY p.version
    LIMIT 1
  ) AS p ON true
),
measured AS (
  SELECT *, row_number() OVER newest_first AS place, count(*) OVER () AS found,
         sum(bytes) OVER newest_first AS bytes_so_far
  FROM page
  WINDOW newest_first AS (ORDER BY version DESC)
),
fitting AS (
  SELECT *, found > count(*) OVER () AS has_more FROM measured
  WHERE place <= %(limit)s AND (place = 1 OR bytes_so_far <= %(max_bytes)s)
)
SELECT s.*, f.version AS observed_version, f.kind AS observed_kind,
       f.idempotency_key AS observed_key, f.created_at AS observed_at,
       f.api_key_id AS actor_key_id, f.user_id AS actor_user_id, f.session_id AS actor_session_id,
       f.has_more
FROM fitting AS f
CROSS JOIN event AS e
LEFT JOIN annals.observation_payloads AS p
  ON p.tenant_id = %(tenant_id)s AND p.event_id = %(event_id)s AND p.version = f.payload_version
CROSS JOIN LATERAL jsonb_populate_record(
  NULL::annals.events, coalesce(p.payload, to_jsonb(e))) AS s
ORDER BY f.version DESC
