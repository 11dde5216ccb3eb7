-- What is parked does not wait: nobody will mirror it.
SELECT DISTINCT key FROM annals.outbox
WHERE tenant_id = %(tenant_id)s AND kind IN ('event', 'memory', 'conversation')
  AND key = ANY(%(keys)s) AND parked_at IS NULL
