-- lock_relationship_ends
-- Holds the conversations of both ends, in one order: what changes or erases an end waits, and
-- the statement that follows sees what was committed before.
SELECT c.conversation_id
FROM annals.conversations AS c
WHERE c.tenant_id = %(tenant_id)s
  AND c.conversation_id IN (
    SELECT unnest(%(conversation_ids)s::uuid[])
    UNION ALL
    SELECT e.conversation_id FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.event_id = ANY(%(event_ids)s::uuid[])
    UNION ALL
    SELECT m.conversation_id FROM annals.memories AS m
    WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = ANY(%(memory_ids)s::uuid[])
    UNION ALL
    SELECT a.conversation_id FROM annals.attachments AS a
    WHERE a.tenant_id = %(tenant_id)s AND a.attachment_id = ANY(%(attachment_ids)s::uuid[]))
ORDER BY c.conversation_id
FOR SHARE
