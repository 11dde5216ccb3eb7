SELECT user_id, merged_at
FROM annals.session_merges
WHERE tenant_id = %(tenant_id)s AND session_id = %(session_id)s
FOR UPDATE
