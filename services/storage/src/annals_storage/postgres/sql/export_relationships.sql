-- Relationships that name no other conversation and nothing of another one.
SELECT r.* FROM annals.relationships AS r
WHERE r.tenant_id = %(tenant_id)s
  AND (r.source_conversation_id = %(conversation_id)s
       OR r.target_conversation_id = %(conversation_id)s)
  AND (r.source_conversation_id IS NULL OR r.source_conversation_id = %(conversation_id)s)
  AND (r.target_conversation_id IS NULL OR r.target_conversation_id = %(conversation_id)s)
  AND r.relationship_id > %(after_relationship_id)s::uuid
ORDER BY r.relationship_id
LIMIT %(limit)s
