-- A pause that doubles with every attempt; parked after the last one, with its error. What changed
-- while it was tried is given back: it may well succeed now.
UPDATE annals.outbox
SET available_at = CASE WHEN generation = %(generation)s
      THEN clock_timestamp() + least(interval '5 minutes', interval '1 second' * 2 ^ least(attempts, 9))
      ELSE clock_timestamp() END,
    parked_at = CASE WHEN generation = %(generation)s AND attempts >= %(max_attempts)s
      THEN clock_timestamp() END,
    last_error = CASE WHEN generation = %(generation)s THEN %(error)s END,
    lease_owner = NULL
WHERE tenant_id = %(tenant_id)s AND kind = %(kind)s AND key = %(key)s AND lease_owner = %(owner)s
