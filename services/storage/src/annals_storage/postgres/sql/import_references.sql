-- The first line of some whose event names what does not stand before it in the conversation: its
-- parent, or for a tool result the call.
--
-- Lookups are LATERAL with LIMIT: each is one probe of an index, whatever the planner believes of
-- the sizes of the tables.
WITH reference AS MATERIALIZED (
  SELECT r.*
  FROM json_to_recordset(%(references)s::json)
    AS r (line bigint, seq bigint, parent_event_id uuid, tool_call_id text)
)
SELECT r.line, 'parent_event_id' AS field
FROM reference AS r
LEFT JOIN LATERAL (
  SELECT e.event_id FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = r.parent_event_id
    AND e.conversation_id = %(conversation_id)s AND e.seq < r.seq
  LIMIT 1
) AS parent ON true
WHERE r.parent_event_id IS NOT NULL AND parent.event_id IS NULL
UNION ALL
SELECT r.line, 'tool_call_id'
FROM reference AS r
LEFT JOIN LATERAL (
  SELECT e.event_id FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
    AND e.tool_call_id = r.tool_call_id AND e.type = 'tool_call' AND e.seq < r.seq
  LIMIT 1
) AS call ON true
WHERE r.tool_call_id IS NOT NULL AND call.event_id IS NULL
ORDER BY line
LIMIT 1
