SELECT signing_key_id, display_name, algorithm, issuer, audience, created_at, public_key_pem,
       encrypted_secret, expires_at, revoked_at
FROM annals.signing_keys
WHERE tenant_id = %(tenant_id)s
  AND (%(cursor_id)s::uuid IS NULL
       OR (created_at, signing_key_id) > (%(cursor_time)s, %(cursor_id)s))
ORDER BY created_at, signing_key_id
LIMIT %(limit)s
