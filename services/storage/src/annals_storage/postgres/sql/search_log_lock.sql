-- Erasures hold this lock alone, writers of the log share it: a search is logged before an erasure,
-- which then erases it, or after it, when it is seen that its subject is gone.
SELECT CASE WHEN %(shared)s::boolean
  THEN pg_advisory_xact_lock_shared(hashtextextended('search_log:' || %(tenant_id)s::uuid, 0))
  ELSE pg_advisory_xact_lock(hashtextextended('search_log:' || %(tenant_id)s::uuid, 0))
END
