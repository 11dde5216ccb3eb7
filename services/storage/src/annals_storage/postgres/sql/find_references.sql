-- What a new content of the event at %(seq)s names must stand before it.
SELECT
  %(parent_event_id)s::uuid IS NULL OR EXISTS (
    SELECT FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(parent_event_id)s
      AND e.conversation_id = %(conversation_id)s AND e.seq < %(seq)s) AS parent_exists,
  (SELECT e.tool_name FROM annals.events AS e
   WHERE e.tenant_id = %(tenant_id)s AND e.conversation_id = %(conversation_id)s
     AND e.tool_call_id = %(tool_call_id)s::text AND e.type = 'tool_call' AND e.seq < %(seq)s
   LIMIT 1) AS called_tool
