SELECT count(*) FILTER (WHERE parked_at IS NULL) AS pending,
       count(*) FILTER (WHERE parked_at IS NOT NULL) AS parked,
       count(*) FILTER (WHERE parked_at IS NULL AND held_generation = generation) AS held,
       min(enqueued_at) FILTER (WHERE parked_at IS NULL) AS oldest,
       clock_timestamp() AS as_of
FROM annals.outbox
WHERE tenant_id = %(tenant_id)s
  AND (%(kinds)s::text[] IS NULL OR kind = ANY(%(kinds)s))
  AND (%(conversation_ids)s::uuid[] IS NULL OR conversation_id = ANY(%(conversation_ids)s))
  AND (%(enqueued_until)s::timestamptz IS NULL OR enqueued_at <= %(enqueued_until)s)
