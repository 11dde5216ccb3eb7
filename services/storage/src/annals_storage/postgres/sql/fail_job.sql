-- A pause that doubles with every attempt; parked after the last one, with its error. What changed
-- while it was tried waits no longer than changes do: it may well succeed now.
UPDATE annals.jobs
SET available_at = CASE WHEN generation = %(generation)s
      THEN clock_timestamp() + least(interval '15 minutes', interval '5 seconds' * 2 ^ least(attempts, 9))
      ELSE available_at END,
    parked_at = CASE WHEN generation = %(generation)s AND attempts >= %(max_attempts)s
      THEN clock_timestamp() END,
    last_error = %(error)s,
    lease_owner = NULL, lease_hash = NULL, leased_until = NULL
WHERE tenant_id = %(tenant_id)s AND subject = %(subject)s AND kind = %(kind)s
  AND lease_hash = %(lease_hash)s AND leased_until > clock_timestamp()
RETURNING parked_at IS NOT NULL AS is_parked
