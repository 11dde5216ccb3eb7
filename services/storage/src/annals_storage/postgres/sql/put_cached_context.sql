-- Under chunk_lock.sql: an erasure waits for it, or has made the state another one.
INSERT INTO annals.context_cache AS k
  (tenant_id, conversation_id, request_digest, state, context_version, body, body_bytes, expires_at)
VALUES (%(tenant_id)s, %(conversation_id)s, %(request_digest)s, %(state)s, %(context_version)s,
        %(body)s::bytea, octet_length(%(body)s::bytea),
        now() + make_interval(secs => %(ttl_seconds)s))
ON CONFLICT (tenant_id, conversation_id, request_digest, state) DO UPDATE
SET context_version = excluded.context_version, body = excluded.body,
    body_bytes = excluded.body_bytes, created_at = excluded.created_at,
    expires_at = excluded.expires_at
