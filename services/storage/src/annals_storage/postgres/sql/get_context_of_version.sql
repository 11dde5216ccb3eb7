SELECT k.body
FROM annals.context_cache AS k
JOIN annals.conversations AS c USING (tenant_id, conversation_id)
WHERE k.tenant_id = %(tenant_id)s AND k.conversation_id = %(conversation_id)s
  AND k.context_version = %(context_version)s AND k.expires_at > now() AND c.deleted_at IS NULL
LIMIT 1
