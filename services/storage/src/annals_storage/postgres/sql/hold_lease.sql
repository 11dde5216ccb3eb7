-- Under this lock nobody else gets the job before the transaction is over.
SELECT kind FROM annals.jobs
WHERE tenant_id = %(tenant_id)s AND subject = %(subject)s AND kind = %(kind)s
  AND lease_hash = %(lease_hash)s AND leased_until > clock_timestamp()
FOR UPDATE
