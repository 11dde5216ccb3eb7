WITH old_logs AS MATERIALIZED (
  SELECT l.provider_log_id FROM annals.provider_logs AS l
  LEFT JOIN annals.conversations AS c
    ON c.tenant_id = %(tenant_id)s AND c.conversation_id = l.conversation_id
  LEFT JOIN annals.retention_policies AS t
    ON t.tenant_id = %(tenant_id)s AND t.agent_id = '00000000-0000-0000-0000-000000000000'
  LEFT JOIN annals.retention_policies AS a
    ON a.tenant_id = %(tenant_id)s AND a.agent_id = c.agent_id
  WHERE l.tenant_id = %(tenant_id)s
    AND (l.expires_at <= %(now)s::timestamptz
         OR l.created_at <= %(now)s::timestamptz
            - interval '24 hours' * coalesce(a.provider_log_days, t.provider_log_days))
  LIMIT %(limit)s
),
old_searches AS MATERIALIZED (
  SELECT search_id FROM annals.search_log
  WHERE tenant_id = %(tenant_id)s
    AND created_at <= %(now)s::timestamptz - interval '24 hours' * coalesce(
      (SELECT t.search_log_days FROM annals.retention_policies AS t
       WHERE t.tenant_id = %(tenant_id)s
         AND t.agent_id = '00000000-0000-0000-0000-000000000000'),
      %(default_search_log_days)s::integer)
  LIMIT %(limit)s
),
old_contexts AS MATERIALIZED (
  SELECT conversation_id, request_digest, state FROM annals.context_cache
  WHERE tenant_id = %(tenant_id)s AND expires_at <= %(now)s::timestamptz
  LIMIT %(limit)s
)
SELECT (SELECT count(*) FROM old_logs) AS provider_logs,
       (SELECT count(*) FROM old_searches) AS search_log,
       (SELECT count(*) FROM old_contexts) AS cached_contexts
