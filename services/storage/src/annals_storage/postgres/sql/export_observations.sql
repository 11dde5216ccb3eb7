-- Observations of some events, in their order, with what the event was at that version where it
-- is not the newest. A page ends after limit rows or when it is full in bytes, but holds one.
WITH page AS (
  SELECT k.place, o.event_id, o.version, o.kind, o.idempotency_key, o.payload_hash, o.api_key_id,
         o.user_id, o.session_id, o.created_at, p.payload_bytes
  FROM unnest(%(event_ids)s::uuid[]) WITH ORDINALITY AS k (event_id, place)
  CROSS JOIN LATERAL (
    SELECT * FROM annals.observations AS o
    WHERE o.tenant_id = %(tenant_id)s AND o.event_id = k.event_id
      AND o.version > CASE WHEN k.place = %(after_place)s THEN %(after_version)s ELSE 0 END
    ORDER BY o.version
    LIMIT %(limit)s
  ) AS o
  LEFT JOIN annals.observation_payloads AS p
    ON p.tenant_id = %(tenant_id)s AND p.event_id = o.event_id AND p.version = o.version
  WHERE k.place >= %(after_place)s
  ORDER BY k.place, o.version
  LIMIT %(limit)s
),
measured AS (
  SELECT *, row_number() OVER in_order AS number,
         sum(coalesce(payload_bytes, 0)) OVER in_order AS bytes_so_far
  FROM page
  WINDOW in_order AS (ORDER BY place, version)
)
SELECT m.*, p.payload
FROM measured AS m
LEFT JOIN annals.observation_payloads AS p
  ON p.tenant_id = %(tenant_id)s AND p.event_id = m.event_id AND p.version = m.version
WHERE m.number = 1 OR m.bytes_so_far <= %(max_bytes)s
ORDER BY m.place, m.version
