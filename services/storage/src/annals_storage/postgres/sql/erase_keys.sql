WITH gone AS (
  DELETE FROM annals.api_keys WHERE tenant_id = %(tenant_id)s RETURNING api_key_id
)
SELECT coalesce(array_agg(api_key_id), '{}') AS api_key_ids FROM gone
