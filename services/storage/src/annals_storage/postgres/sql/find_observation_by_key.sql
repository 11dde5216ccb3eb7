SELECT event_id, version, payload_hash
FROM annals.observations
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  AND idempotency_key = %(idempotency_key)s
LIMIT 1
