"""Who makes a call: whose key it is, and for which end user."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from datetime import datetime
from uuid import UUID

from annals_common.errors import CredentialsInvalidError, FieldInvalidError
from annals_common.principal import EndUser, Principal
from annals_storage.commands.end_users import NOBODY, EndUserClaim, IdentifyEndUser
from annals_storage.commands.remembering import Remembering, utc_now
from annals_storage.commands.worker_credentials import WorkerCredentials
from annals_storage.domain.ownership import EndUserMode
from annals_storage.domain.tenancy import Credential, hash_secret, tenant_of_secret
from annals_storage.ports.tenancy import TenantStore


class Authenticate:
    """Maps secrets, and what is claimed of the end user, to principals."""

    def __init__(
        self,
        tenants: TenantStore,
        identify: IdentifyEndUser,
        workers: WorkerCredentials,
        *,
        admin_key_hash: bytes | None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._tenants, self._identify, self._workers = tenants, identify, workers
        self._admin_key_hash = admin_key_hash
        self._now = now
        self._credentials = Remembering(self._lookup, now=now)

    async def __call__(
        self, secret: str, claim: Callable[[], EndUserClaim], method: str
    ) -> Principal:
        """Return who calls `method`. The claim is read once the key is known to be good.

        Raises CredentialsInvalidError, alike for every kind of wrong key; ScopeMissingError for
        what is no worker's to call; for a wrong end user FieldInvalidError, UserTokenInvalidError
        or UserTokenRequiredError.
        """
        key_hash = hash_secret(secret)
        if self._admin_key_hash and hmac.compare_digest(key_hash, self._admin_key_hash):
            return _administrator(claim())
        if self._workers.are(secret):
            _refuse_end_user(claim())
            return await self._workers(secret, method)
        tenant_id = tenant_of_secret(secret)
        if tenant_id is None:
            raise CredentialsInvalidError
        credential = await self._credential(tenant_id, key_hash)
        end_user = await self._end_user(tenant_id, credential, claim(), method)
        key = credential.key
        return Principal(
            tenant_id,
            key.scopes,
            key.api_key_id,
            publishable=key.publishable,
            agent_id=key.agent_id,
            end_user=end_user,
        )

    def forget_key(self, api_key_id: UUID) -> None:
        """Look the key up anew at its next use: it was revoked."""
        self._credentials.forget(lambda known: known.key.api_key_id == api_key_id)

    def forget_agent(self, agent_id: UUID) -> None:
        """Look the keys of an agent up anew: what it accepts of end users has changed."""
        self._credentials.forget(lambda known: known.key.agent_id == agent_id)

    async def _credential(self, tenant_id: UUID, key_hash: bytes) -> Credential:
        found = await self._credentials((tenant_id, key_hash))
        if found is None or not found.key.is_valid_at(self._now()):
            raise CredentialsInvalidError
        return found

    async def _lookup(self, key: tuple[UUID, bytes]) -> Credential | None:
        return await self._tenants.find_key(*key)

    async def _end_user(
        self, tenant_id: UUID, credential: Credential, claim: EndUserClaim, method: str
    ) -> EndUser | None:
        if credential.key.publishable:
            claim.require()
        if claim == NOBODY:
            return None
        # A secret key is bound to no agent: what the agent of a conversation accepts is looked
        # at where the conversation is.
        mode = credential.agent_mode or EndUserMode.TRUSTED
        return await self._identify(tenant_id, claim, mode=mode, method=method)


def _administrator(claim: EndUserClaim) -> Principal:
    _refuse_end_user(claim)
    return Principal(tenant_id=None)


def _refuse_end_user(claim: EndUserClaim) -> None:
    if claim != NOBODY:
        raise FieldInvalidError(claim.fields[0], "needs a tenant's key")
