-- Also of a deleted or erased event: its place stays.
SELECT e.branch, e.seq
FROM annals.events AS e
WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s
  AND e.conversation_id = %(conversation_id)s
