-- As if it had never been leased.
UPDATE annals.jobs
SET attempts = attempts - 1, lease_owner = NULL, lease_hash = NULL, leased_until = NULL
WHERE tenant_id = %(tenant_id)s AND subject = %(subject)s AND kind = %(kind)s
  AND lease_hash = %(lease_hash)s AND leased_until > clock_timestamp()
RETURNING kind
