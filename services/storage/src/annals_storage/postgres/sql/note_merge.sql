INSERT INTO annals.session_merges (tenant_id, session_id, user_id, moved_count, api_key_id)
VALUES (%(tenant_id)s, %(session_id)s, %(user_id)s, 0, %(api_key_id)s)
ON CONFLICT (tenant_id, session_id) DO NOTHING
