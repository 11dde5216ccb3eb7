-- Copies in forks, and copies of copies in forks of forks.
WITH RECURSIVE fork AS (
  SELECT conversation_id FROM annals.conversations
  WHERE tenant_id = %(tenant_id)s AND forked_from_conversation_id = %(conversation_id)s
  UNION
  SELECT c.conversation_id FROM annals.conversations AS c
  JOIN fork AS f ON c.forked_from_conversation_id = f.conversation_id
  WHERE c.tenant_id = %(tenant_id)s
),
inside AS MATERIALIZED (
  SELECT e.event_id, e.origin_event_id
  FROM fork AS f
  JOIN annals.events AS e
    ON e.tenant_id = %(tenant_id)s AND e.conversation_id = f.conversation_id
  WHERE e.origin_event_id IS NOT NULL AND e.erased_at IS NULL
),
copy AS (
  SELECT i.event_id FROM inside AS i
  JOIN annals.events AS o ON o.tenant_id = %(tenant_id)s AND o.event_id = i.origin_event_id
  WHERE o.conversation_id = %(conversation_id)s
    AND (%(event_id)s::uuid IS NULL OR o.event_id = %(event_id)s)
  UNION
  SELECT i.event_id FROM inside AS i JOIN copy AS c ON i.origin_event_id = c.event_id
)
SELECT count(*) AS copies FROM copy
