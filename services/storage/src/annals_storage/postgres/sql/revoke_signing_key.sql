UPDATE annals.signing_keys SET revoked_at = coalesce(revoked_at, now())
WHERE tenant_id = %(tenant_id)s AND signing_key_id = %(signing_key_id)s
RETURNING signing_key_id, display_name, algorithm, issuer, audience, created_at, public_key_pem,
       encrypted_secret, expires_at, revoked_at
