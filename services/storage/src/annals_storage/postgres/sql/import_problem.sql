-- References of a conversation to events and other things that it does not hold; what takes the
-- place of an event is a later one.
WITH reference AS (
  SELECT 'superseded_by' AS field, 'event' AS kind, superseded_by::text AS id,
         seq AS after_seq
  FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
    AND superseded_by IS NOT NULL
  UNION ALL
  SELECT 'event_ids', 'event', event_id::text, 0
  FROM annals.append_requests CROSS JOIN LATERAL unnest(event_ids) AS event_id
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  UNION ALL
  SELECT 'source_id', source_kind, source_id, 0 FROM annals.relationships
  WHERE tenant_id = %(tenant_id)s AND source_conversation_id = %(conversation_id)s
    AND (target_conversation_id IS NULL OR target_conversation_id = %(conversation_id)s)
  UNION ALL
  SELECT 'target_id', target_kind, target_id, 0 FROM annals.relationships
  WHERE tenant_id = %(tenant_id)s AND target_conversation_id = %(conversation_id)s
    AND (source_conversation_id IS NULL OR source_conversation_id = %(conversation_id)s)
)
SELECT r.field, r.id
FROM reference AS r
WHERE CASE r.kind
  WHEN 'event' THEN NOT EXISTS (
    SELECT FROM annals.events AS e
    WHERE e.tenant_id = %(tenant_id)s AND e.event_id = r.id::uuid
      AND e.conversation_id = %(conversation_id)s AND e.seq > r.after_seq)
  WHEN 'memory' THEN NOT EXISTS (
    SELECT FROM annals.memories AS m
    WHERE m.tenant_id = %(tenant_id)s AND m.memory_id = r.id::uuid
      AND m.conversation_id = %(conversation_id)s)
  WHEN 'attachment' THEN NOT EXISTS (
    SELECT FROM annals.attachments AS a
    WHERE a.tenant_id = %(tenant_id)s AND a.attachment_id = r.id::uuid
      AND a.conversation_id = %(conversation_id)s)
  ELSE r.id <> %(conversation_id)s::text
END
LIMIT 1
