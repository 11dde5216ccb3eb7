-- Before anything of an event changes: appends and changes of one conversation go one by one.
SELECT conversation_id, deleted_at
FROM annals.conversations
WHERE tenant_id = %(tenant_id)s
  AND conversation_id = (SELECT e.conversation_id FROM annals.events AS e
                         WHERE e.tenant_id = %(tenant_id)s AND e.event_id = %(event_id)s)
FOR NO KEY UPDATE
