SELECT kind, count(*) FILTER (WHERE parked_at IS NULL) AS pending,
       count(*) FILTER (WHERE parked_at IS NOT NULL) AS parked,
       coalesce(extract(epoch FROM
         clock_timestamp() - min(enqueued_at) FILTER (WHERE parked_at IS NULL)), 0)
         ::double precision AS lag_seconds
FROM annals.jobs
WHERE tenant_id = %(tenant_id)s
  AND (%(conversation_id)s::uuid IS NULL OR subject = %(conversation_id)s)
GROUP BY kind ORDER BY kind
