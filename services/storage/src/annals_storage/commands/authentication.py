"""Who a key belongs to."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from annals_common.errors import CredentialsInvalidError
from annals_common.principal import Principal
from annals_storage.domain.tenancy import ApiKey, hash_secret, tenant_of_secret
from annals_storage.ports import TenantStore

CACHE_TTL = timedelta(seconds=5)
"""How long another replica may still accept a key revoked here."""
CACHE_ENTRIES = 10_000


def utc_now() -> datetime:
    """Return the present moment."""
    return datetime.now(UTC)


class Authenticate:
    """Maps secrets to principals, with a short memory."""

    def __init__(
        self,
        tenants: TenantStore,
        *,
        admin_key_hash: bytes | None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._tenants = tenants
        self._admin_key_hash = admin_key_hash
        self._now = now
        self._forgotten = 0
        self._cache: OrderedDict[bytes, tuple[datetime, UUID, ApiKey]] = OrderedDict()

    async def __call__(self, secret: str) -> Principal:
        """Raises CredentialsInvalidError, alike for every kind of wrong key."""
        key_hash = hash_secret(secret)
        if self._admin_key_hash and hmac.compare_digest(key_hash, self._admin_key_hash):
            return Principal(tenant_id=None)
        tenant_id = tenant_of_secret(secret)
        if tenant_id is None:
            raise CredentialsInvalidError
        return await self._tenant_principal(tenant_id, key_hash)

    def forget(self, api_key_id: UUID) -> None:
        """Look the key up anew at its next use: it was revoked."""
        self._forgotten += 1
        for key_hash, (_, _, key) in list(self._cache.items()):
            if key.api_key_id == api_key_id:
                del self._cache[key_hash]

    async def _tenant_principal(self, tenant_id: UUID, key_hash: bytes) -> Principal:
        key = self._cached(tenant_id, key_hash) or await self._lookup(tenant_id, key_hash)
        if not key.is_valid_at(self._now()):
            raise CredentialsInvalidError
        return Principal(tenant_id, key.scopes, key.api_key_id)

    def _cached(self, tenant_id: UUID, key_hash: bytes) -> ApiKey | None:
        entry = self._cache.get(key_hash)
        if entry is None or entry[0] <= self._now() or entry[1] != tenant_id:
            return None
        return entry[2]

    async def _lookup(self, tenant_id: UUID, key_hash: bytes) -> ApiKey:
        before = self._forgotten
        key = await self._tenants.find_key(tenant_id, key_hash)
        if key is None:
            raise CredentialsInvalidError
        if before != self._forgotten:
            # A key was revoked meanwhile: what was read may be what was true before.
            return key
        self._cache[key_hash] = (self._now() + CACHE_TTL, tenant_id, key)
        self._cache.move_to_end(key_hash)
        while len(self._cache) > CACHE_ENTRIES:
            self._cache.popitem(last=False)
        return key
