-- Everything of a tenant that no conversation holds, except for receipts and the outbox.
WITH gone_search_log AS (
  DELETE FROM annals.search_log WHERE tenant_id = %(tenant_id)s RETURNING 1
),
gone_provider_logs AS (
  DELETE FROM annals.provider_logs WHERE tenant_id = %(tenant_id)s RETURNING 1
),
gone_relationships AS (
  DELETE FROM annals.relationships WHERE tenant_id = %(tenant_id)s RETURNING 1
),
gone_merges AS (
  DELETE FROM annals.session_merges WHERE tenant_id = %(tenant_id)s RETURNING 1
),
gone_policies AS (
  DELETE FROM annals.retention_policies WHERE tenant_id = %(tenant_id)s RETURNING 1
),
gone_signing_keys AS (
  DELETE FROM annals.signing_keys WHERE tenant_id = %(tenant_id)s RETURNING 1
),
gone_parameters AS (
  DELETE FROM annals.search_parameters WHERE tenant_id = %(tenant_id)s RETURNING 1
),
gone_contexts AS (
  DELETE FROM annals.context_cache WHERE tenant_id = %(tenant_id)s RETURNING 1
),
gone_keys AS (DELETE FROM annals.api_keys WHERE tenant_id = %(tenant_id)s RETURNING 1),
gone_agents AS (DELETE FROM annals.agents WHERE tenant_id = %(tenant_id)s RETURNING 1),
gone_tenant AS (DELETE FROM annals.tenants WHERE tenant_id = %(tenant_id)s RETURNING 1)
SELECT (SELECT count(*) FROM gone_search_log) AS search_log,
       (SELECT count(*) FROM gone_provider_logs) AS provider_logs,
       (SELECT count(*) FROM gone_relationships) AS relationships,
       (SELECT count(*) FROM gone_merges) AS session_merges,
       (SELECT count(*) FROM gone_policies) AS retention_policies,
       (SELECT count(*) FROM gone_signing_keys) AS signing_keys,
       (SELECT count(*) FROM gone_parameters) AS search_parameters,
       (SELECT count(*) FROM gone_contexts) AS cached_contexts,
       (SELECT count(*) FROM gone_keys) AS api_keys,
       (SELECT count(*) FROM gone_agents) AS agents,
       (SELECT count(*) FROM gone_tenant) AS tenants
