SELECT branch, request_hash
FROM annals.branches
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
  AND request_id = %(request_id)s
