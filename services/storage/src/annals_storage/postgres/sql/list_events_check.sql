-- No row without the conversation. has_branch: where a branch is named, there is one.
SELECT coalesce(%(branch)s::integer, 1) = 1 OR EXISTS (
    SELECT FROM annals.branches AS b
    WHERE b.tenant_id = %(tenant_id)s AND b.conversation_id = %(conversation_id)s
      AND b.branch = %(branch)s
  ) AS has_branch
FROM annals.conversations AS c
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
  AND c.deleted_at IS NULL
