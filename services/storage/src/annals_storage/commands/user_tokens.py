"""Believes a user token, or does not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from uuid import UUID

import jwt

from annals_common.errors import UserTokenInvalidError
from annals_storage.commands.remembering import Remembering, utc_now
from annals_storage.domain.sealing import SealBrokenError, SecretBox
from annals_storage.domain.signing import SigningAlgorithm, SigningKey
from annals_storage.domain.user_tokens import UnverifiedToken, parse_token, subject_of
from annals_storage.ports.tenancy import SigningKeyStore

_SIGNATURE_ALONE = {
    "verify_signature": True,
    **{f"verify_{name}": False for name in ("exp", "nbf", "iat", "aud", "iss", "sub", "jti")},
}
"""The claims are judged more strictly by `subject_of`."""


class VerifyUserToken:
    """Tells whom a token proves. Keys are remembered shortly."""

    def __init__(
        self,
        keys: SigningKeyStore,
        box: SecretBox | None,
        *,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._store, self._box, self._now = keys, box, now
        self._keys = Remembering(self._lookup, now=now)

    async def __call__(self, tenant_id: UUID, token: str) -> str:
        """Return the user id. Raises UserTokenInvalidError, alike whatever is wrong."""
        try:
            parsed = parse_token(token)
            key = await self._key(tenant_id, parsed)
            self._check_signature(tenant_id, token, key)
            return subject_of(parsed.claims, key, now_s=self._now().timestamp())
        except (ValueError, SealBrokenError, jwt.PyJWTError) as error:
            raise UserTokenInvalidError from error

    def forget(self, signing_key_id: UUID) -> None:
        """Look the key up anew at its next use: it was revoked."""
        self._keys.forget(lambda key: key.signing_key_id == signing_key_id)

    async def _key(self, tenant_id: UUID, parsed: UnverifiedToken) -> SigningKey:
        """Return the key the token names. Raises ValueError unless it takes the algorithm."""
        key = await self._keys((tenant_id, parsed.key_id))
        if key is None or not key.is_valid_at(self._now()):
            raise ValueError("unknown key")
        if key.algorithm != parsed.algorithm:
            raise ValueError("another algorithm")
        return key

    async def _lookup(self, key: tuple[UUID, UUID]) -> SigningKey | None:
        return await self._store.find(*key)

    def _check_signature(self, tenant_id: UUID, token: str, key: SigningKey) -> None:
        material = self._material(tenant_id, key)
        jwt.decode(token, material, algorithms=[key.algorithm.value], options=_SIGNATURE_ALONE)  # type: ignore[arg-type]

    def _material(self, tenant_id: UUID, key: SigningKey) -> str | bytes:
        if key.algorithm is not SigningAlgorithm.HS256:
            return key.public_key_pem or ""
        if self._box is None or key.encrypted_secret is None:
            raise ValueError("the secret cannot be read")
        return self._box.open(key.encrypted_secret, place=place_of(tenant_id, key.signing_key_id))


def place_of(tenant_id: UUID, signing_key_id: UUID) -> bytes:
    """Return where a secret is kept: it opens nowhere else."""
    return tenant_id.bytes + signing_key_id.bytes
