SELECT (
  SELECT count(*) FROM annals.events
  WHERE tenant_id = %(tenant_id)s AND deleted_at IS NULL AND erased_at IS NULL
) + (
  SELECT count(*) FROM annals.memories WHERE tenant_id = %(tenant_id)s
) AS sources
