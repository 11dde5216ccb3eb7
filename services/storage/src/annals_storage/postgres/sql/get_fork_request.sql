SELECT request_hash, new_conversation_id
FROM annals.fork_requests
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  AND request_id = %(request_id)s
