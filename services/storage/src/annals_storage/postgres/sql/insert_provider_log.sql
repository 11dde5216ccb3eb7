-- insert_provider_log
-- Holds the conversation against an erasure. No row: see provider_log_owner.sql.
INSERT INTO annals.provider_logs
  (tenant_id, provider_log_id, conversation_id, provider, model, request_json, response_json,
   latency_ms, expires_at)
SELECT c.tenant_id, %(provider_log_id)s, c.conversation_id, %(provider)s, %(model)s,
       %(request_json)s, %(response_json)s, %(latency_ms)s,
       now() + make_interval(days => coalesce(
         (SELECT p.provider_log_days FROM annals.retention_policies AS p
          WHERE p.tenant_id = %(tenant_id)s AND p.agent_id = c.agent_id),
         (SELECT p.provider_log_days FROM annals.retention_policies AS p
          WHERE p.tenant_id = %(tenant_id)s
            AND p.agent_id = '00000000-0000-0000-0000-000000000000'),
         %(default_days)s))
FROM annals.conversations AS c
JOIN annals.agents AS a ON a.tenant_id = c.tenant_id AND a.agent_id = c.agent_id
WHERE c.tenant_id = %(tenant_id)s AND c.conversation_id = %(conversation_id)s
  AND c.deleted_at IS NULL AND a.provider_logs_enabled
FOR KEY SHARE OF c
RETURNING *
