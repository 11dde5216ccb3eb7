"""Creates and revokes the keys that sign user tokens."""

from __future__ import annotations

import base64
import secrets
from dataclasses import replace
from uuid import UUID

from annals_common.errors import NotConfiguredError
from annals_storage.commands.user_tokens import VerifyUserToken, place_of
from annals_storage.domain.sealing import SecretBox
from annals_storage.domain.signing import NewSigningKey, SigningAlgorithm, SigningKey
from annals_storage.ports.tenancy import SigningKeyStore

SECRETS_KEY_SETTING = "ANNALS_STORAGE_SECRETS_KEY"
SECRET_BYTES = 32


class CreateSigningKey:
    """Creates keys; the secret of HS256 is returned once and kept encrypted."""

    def __init__(self, keys: SigningKeyStore, box: SecretBox | None) -> None:
        self._keys, self._box = keys, box

    async def __call__(self, tenant_id: UUID, new: NewSigningKey) -> tuple[SigningKey, str]:
        """Return the key and, for HS256, its secret in base64url without padding.

        Raises NotConfiguredError when there is nothing to encrypt it with, ResourceNotFoundError
        without the tenant.
        """
        if new.algorithm is not SigningAlgorithm.HS256:
            return await self._keys.create(tenant_id, new), ""
        if self._box is None:
            raise NotConfiguredError(SECRETS_KEY_SETTING)
        secret = secrets.token_bytes(SECRET_BYTES)
        sealed = self._box.seal(secret, place=place_of(tenant_id, new.signing_key_id))
        key = await self._keys.create(tenant_id, replace(new, encrypted_secret=sealed))
        return key, base64.urlsafe_b64encode(secret).rstrip(b"=").decode()


class RevokeSigningKey:
    """Refuses tokens of a key from now on."""

    def __init__(self, keys: SigningKeyStore, verify: VerifyUserToken) -> None:
        self._keys, self._verify = keys, verify

    async def __call__(self, tenant_id: UUID, signing_key_id: UUID) -> SigningKey:
        """Return the key as it is now. Raises ResourceNotFoundError."""
        key = await self._keys.revoke(tenant_id, signing_key_id)
        self._verify.forget(signing_key_id)
        return key
