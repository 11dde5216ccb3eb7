SELECT b.* FROM annals.branches AS b
WHERE b.tenant_id = %(tenant_id)s AND b.conversation_id = %(conversation_id)s
  AND b.branch > %(after_branch)s
ORDER BY b.branch
LIMIT %(limit)s
