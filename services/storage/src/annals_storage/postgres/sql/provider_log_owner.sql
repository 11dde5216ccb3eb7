-- provider_log_owner
SELECT agent_id FROM annals.conversations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s AND deleted_at IS NULL
