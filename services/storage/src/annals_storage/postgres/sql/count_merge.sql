UPDATE annals.session_merges
SET moved_count = moved_count + %(moved_count)s, updated_at = now()
WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s
