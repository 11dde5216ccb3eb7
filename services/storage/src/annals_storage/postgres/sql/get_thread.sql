-- An event, what it answers and what answers it, link by link over parent_event_id. One link
-- more than asked is followed, to tell whether there is one. Deleted and erased events are
-- passed through. distance < 0: ancestors. Links -1: not that way.
WITH RECURSIVE start AS MATERIALIZED (
  SELECT e.event_id, e.conversation_id, e.parent_event_id, e.seq
  FROM annals.events AS e
  CROSS JOIN LATERAL (
    SELECT deleted_at FROM annals.conversations AS c
    WHERE c.tenant_id = e.tenant_id AND c.conversation_id = e.conversation_id LIMIT 1
  ) AS c
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s AND c.deleted_at IS NULL
    AND e.deleted_at IS NULL AND e.erased_at IS NULL
),
up AS (
  SELECT event_id, parent_event_id, seq, true AS visible, 0 AS distance FROM start
  UNION ALL
  SELECT p.event_id, p.parent_event_id, p.seq, p.visible, up.distance - 1
  FROM up
  CROSS JOIN LATERAL (
    SELECT e.event_id, e.parent_event_id, e.seq,
           e.deleted_at IS NULL AND e.erased_at IS NULL AS visible
    FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.event_id = up.parent_event_id LIMIT 1
  ) AS p
  WHERE up.distance >= -%(up_links)s::integer AND up.parent_event_id IS NOT NULL
),
down AS (
  SELECT event_id, conversation_id, seq, true AS visible, 0 AS distance FROM start
  UNION ALL
  SELECT a.event_id, a.conversation_id, a.seq, a.visible, down.distance + 1
  FROM down
  CROSS JOIN LATERAL (
    SELECT e.event_id, e.conversation_id, e.seq,
           e.deleted_at IS NULL AND e.erased_at IS NULL AS visible
    FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = down.conversation_id
      AND e.parent_event_id = down.event_id
    -- Not to be merged into a join that reads the conversation anew for every link.
    OFFSET 0
  ) AS a
  WHERE down.distance <= %(down_links)s::integer
),
thread AS MATERIALIZED (
  SELECT event_id, seq, distance, visible FROM up
  UNION
  SELECT event_id, seq, distance, visible FROM down
),
nearest AS (
  SELECT event_id, distance FROM thread
  WHERE visible AND distance BETWEEN -greatest(%(up_links)s, 0) AND greatest(%(down_links)s, 0)
  ORDER BY abs(distance), seq
  LIMIT %(limit)s
)
SELECT e.*, n.distance,
       (SELECT count(*) FROM thread WHERE visible) > (SELECT count(*) FROM nearest)
       OR EXISTS (
         SELECT FROM thread
         WHERE distance < -greatest(%(up_links)s, 0) OR distance > greatest(%(down_links)s, 0)
       ) AS truncated
FROM nearest AS n
CROSS JOIN LATERAL (
  SELECT * FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = n.event_id LIMIT 1
) AS e
ORDER BY e.seq
