-- The job that a lease is of, for as long as it lasts.
SELECT kind FROM annals.jobs
WHERE tenant_id = %(tenant_id)s AND subject = %(subject)s AND lease_hash = %(lease_hash)s
  AND leased_until > clock_timestamp()
