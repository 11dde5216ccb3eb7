SELECT r.target_id::uuid AS event_id
FROM annals.relationships AS r
WHERE r.tenant_id = %(tenant_id)s AND r.source_kind = 'event'
  AND r.source_key = md5(%(event_id)s::uuid::text) AND r.type = 'supersedes'
  AND r.target_kind = 'event'
  AND r.source_conversation_id = r.target_conversation_id
ORDER BY r.created_at
LIMIT 1
