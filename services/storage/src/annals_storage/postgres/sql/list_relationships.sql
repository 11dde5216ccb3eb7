-- list_relationships
-- Two probes by the node's key, one for each end. Nothing of deleted conversations is shown.
SELECT r.*
FROM (
  SELECT * FROM annals.relationships
  WHERE tenant_id = %(tenant_id)s AND source_kind = %(kind)s AND source_key = md5(%(id)s)
    AND source_id = %(id)s AND %(as_source)s
  UNION ALL
  SELECT * FROM annals.relationships
  WHERE tenant_id = %(tenant_id)s AND target_kind = %(kind)s AND target_key = md5(%(id)s)
    AND target_id = %(id)s AND %(as_target)s
) AS r
WHERE (%(types)s::text[] IS NULL OR r.type = ANY(%(types)s))
  AND (%(cursor_id)s::uuid IS NULL
       OR (r.created_at, r.relationship_id) < (%(cursor_time)s, %(cursor_id)s))
  AND NOT EXISTS (
    SELECT FROM annals.conversations AS c
    WHERE c.tenant_id = %(tenant_id)s AND c.deleted_at IS NOT NULL
      AND c.conversation_id IN (r.source_conversation_id, r.target_conversation_id))
ORDER BY r.created_at DESC, r.relationship_id DESC
LIMIT %(limit)s
