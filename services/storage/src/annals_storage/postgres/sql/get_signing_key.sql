SELECT signing_key_id, display_name, algorithm, issuer, audience, created_at, public_key_pem,
       encrypted_secret, expires_at, revoked_at
FROM annals.signing_keys
WHERE tenant_id = %(tenant_id)s AND signing_key_id = %(signing_key_id)s
