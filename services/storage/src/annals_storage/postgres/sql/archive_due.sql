UPDATE annals.conversations AS c
SET status = 'archived', archived_at = now(), ended_at = coalesce(c.ended_at, now()),
    version = c.version + 1, updated_at = now()
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id IN (
  SELECT d.conversation_id
  FROM annals.conversations AS d
  LEFT JOIN annals.retention_policies AS t
    ON t.tenant_id = %(tenant_id)s AND t.agent_id = '00000000-0000-0000-0000-000000000000'
  LEFT JOIN annals.retention_policies AS a
    ON a.tenant_id = %(tenant_id)s AND a.agent_id = d.agent_id
  WHERE d.tenant_id = %(tenant_id)s AND d.deleted_at IS NULL AND d.status <> 'archived'
    AND d.active_at <= %(now)s::timestamptz
        - interval '24 hours' * coalesce(a.archive_after_days, t.archive_after_days)
  ORDER BY d.conversation_id
  LIMIT %(limit)s
  FOR NO KEY UPDATE OF d
)
RETURNING c.conversation_id
