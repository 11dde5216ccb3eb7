UPDATE annals.jobs SET leased_until = clock_timestamp() + %(lease)s::interval
WHERE tenant_id = %(tenant_id)s AND subject = %(subject)s AND kind = %(kind)s
  AND lease_hash = %(lease_hash)s AND leased_until > clock_timestamp()
RETURNING leased_until
