-- Conversations that a policy makes due for one thing. An agent's policy replaces the tenant's
-- field by field.
SELECT c.conversation_id
FROM annals.conversations AS c
LEFT JOIN annals.retention_policies AS t
  ON t.tenant_id = %(tenant_id)s AND t.agent_id = '00000000-0000-0000-0000-000000000000'
LEFT JOIN annals.retention_policies AS a
  ON a.tenant_id = %(tenant_id)s AND a.agent_id = c.agent_id
WHERE c.tenant_id = %(tenant_id)s
  AND (%(after)s::uuid IS NULL OR c.conversation_id > %(after)s)
  AND CASE %(kind)s::text
    WHEN 'archive' THEN
      c.deleted_at IS NULL AND c.status <> 'archived'
      AND c.active_at <= %(now)s::timestamptz
          - interval '24 hours' * coalesce(a.archive_after_days, t.archive_after_days)
    WHEN 'cold' THEN
      c.next_seq - 1 > c.cold_until_seq
      AND c.active_at <= %(now)s::timestamptz
          - interval '24 hours' * coalesce(a.cold_after_days, t.cold_after_days)
    WHEN 'erase' THEN
      c.active_at <= %(now)s::timestamptz
          - interval '24 hours' * coalesce(a.erase_after_days, t.erase_after_days)
      OR c.deleted_at <= %(now)s::timestamptz
          - interval '24 hours' * coalesce(a.erase_deleted_after_days, t.erase_deleted_after_days)
  END
ORDER BY c.conversation_id
LIMIT %(limit)s
