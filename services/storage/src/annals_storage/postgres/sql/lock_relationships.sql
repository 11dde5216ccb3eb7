-- lock_relationships
-- Creations of one type in one tenant follow each other, so that two of them cannot close a
-- cycle that neither sees.
SELECT pg_advisory_xact_lock(
  hashtextextended('relationships:' || %(tenant_id)s::uuid || ':' || %(type)s::text, 0))
