SELECT a.* FROM annals.append_requests AS a
WHERE a.tenant_id = %(tenant_id)s AND a.conversation_id = %(conversation_id)s
  AND a.request_id > %(after_request_id)s::uuid
ORDER BY a.request_id
LIMIT %(limit)s
