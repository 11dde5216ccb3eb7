-- get_relationship_ends
-- Those of the ends that are visible, with the conversation each belongs to.
SELECT n.kind, n.id, n.conversation_id
FROM (
  SELECT 'conversation' AS kind, id, id AS conversation_id
  FROM unnest(%(conversation_ids)s::uuid[]) AS id
  UNION ALL
  SELECT 'event', e.event_id, e.conversation_id FROM annals.events AS e
  WHERE e.tenant_id = %(tenant_id)s AND e.event_id = ANY(%(event_ids)s::uuid[])
    AND e.deleted_at IS NULL AND e.erased_at IS NULL
  UNION ALL
  SELECT 'memory', m.memory_id, m.conversation_id FROM annals.memories AS m
  WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = ANY(%(memory_ids)s::uuid[])
  UNION ALL
  SELECT 'attachment', a.attachment_id, a.conversation_id FROM annals.attachments AS a
  WHERE a.tenant_id = %(tenant_id)s AND a.attachment_id = ANY(%(attachment_ids)s::uuid[])
) AS n
JOIN annals.conversations AS c
  ON c.tenant_id = %(tenant_id)s AND c.conversation_id = n.conversation_id
 AND c.deleted_at IS NULL
