INSERT INTO annals.signing_keys
  (tenant_id, signing_key_id, display_name, algorithm, public_key_pem, encrypted_secret, issuer,
   audience, expires_at)
VALUES
  (%(tenant_id)s, %(signing_key_id)s, %(display_name)s, %(algorithm)s, %(public_key_pem)s,
   %(encrypted_secret)s, %(issuer)s, %(audience)s, %(expires_at)s)
RETURNING signing_key_id, display_name, algorithm, issuer, audience, created_at, public_key_pem,
       encrypted_secret, expires_at, revoked_at
