SELECT EXISTS (
  SELECT FROM annals.outbox
  WHERE tenant_id = %(tenant_id)s AND kind IN ('event', 'memory') AND key = ANY(%(keys)s)
    AND parked_at IS NULL AND last_error IS NULL
) AS waiting
