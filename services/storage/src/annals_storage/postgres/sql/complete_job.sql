-- Only what did not change since it was leased is done; else it is due again as changes have it.
WITH held AS MATERIALIZED (
  SELECT generation = %(generation)s AS is_done FROM annals.jobs
  WHERE tenant_id = %(tenant_id)s AND subject = %(subject)s AND kind = %(kind)s
    AND lease_hash = %(lease_hash)s AND leased_until > clock_timestamp()
  FOR UPDATE
),
done AS (
  DELETE FROM annals.jobs
  WHERE tenant_id = %(tenant_id)s AND subject = %(subject)s AND kind = %(kind)s
    AND EXISTS (SELECT FROM held WHERE is_done)
),
again AS (
  UPDATE annals.jobs
  SET attempts = 0, last_error = NULL, enqueued_at = now(),
      lease_owner = NULL, lease_hash = NULL, leased_until = NULL
  WHERE tenant_id = %(tenant_id)s AND subject = %(subject)s AND kind = %(kind)s
    AND EXISTS (SELECT FROM held WHERE NOT is_done)
)
SELECT is_done FROM held
