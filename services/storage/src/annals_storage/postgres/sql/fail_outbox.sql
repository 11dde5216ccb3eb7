-- A pause that doubles with every attempt; parked after the last one, with its error.
UPDATE annals.outbox
SET available_at = clock_timestamp() + least(interval '5 minutes', interval '1 second' * 2 ^ least(attempts, 9)),
    parked_at = CASE WHEN attempts >= %(max_attempts)s THEN clock_timestamp() END,
    lease_owner = NULL, last_error = %(error)s
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s
  AND generation = %(generation)s AND lease_owner = %(owner)s
