-- Waits for a call with the same request_id that is on its way, then gives no row.
INSERT INTO annals.fork_requests
  (tenant_id, conversation_id, request_id, request_hash, new_conversation_id)
VALUES
  (%(tenant_id)s, %(conversation_id)s, %(request_id)s, %(request_hash)s, %(new_conversation_id)s)
ON CONFLICT DO NOTHING
RETURNING new_conversation_id
