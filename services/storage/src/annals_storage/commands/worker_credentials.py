"""What background workers prove themselves by: the worker key, and tokens of leased jobs."""

from __future__ import annotations

import hmac

from annals_common.errors import CredentialsInvalidError, ScopeMissingError
from annals_common.principal import Principal, Scope
from annals_storage.domain.jobs import TOKEN_PREFIX, is_allowed, read_token
from annals_storage.domain.tenancy import hash_secret
from annals_storage.ports.jobs import LeaseStore

LEASING = "LeaseJobs"


class WorkerCredentials:
    """Maps what workers send to principals, and each of them to the methods it is good for.

    What a worker may not call is refused here, before any handler: a method is not a worker's
    unless it is listed.
    """

    def __init__(self, leases: LeaseStore, *, worker_key_hash: bytes | None) -> None:
        self._leases, self._worker_key_hash = leases, worker_key_hash

    def are(self, secret: str) -> bool:
        """Whether a secret is to be judged here."""
        return secret.startswith(TOKEN_PREFIX) or self._is_worker_key(secret)

    async def __call__(self, secret: str, method: str) -> Principal:
        """Return who calls. Raises CredentialsInvalidError, ScopeMissingError."""
        if self._is_worker_key(secret):
            if method != LEASING:
                raise ScopeMissingError(method, "another key: the worker key may only lease jobs")
            return Principal(None, is_worker=True)
        return await self._job(secret, method)

    async def _job(self, token: str, method: str) -> Principal:
        claim = read_token(token)
        held = await self._leases.find(claim) if claim else None
        if claim is None or held is None:
            raise CredentialsInvalidError
        if not is_allowed(held.kind, method):
            raise ScopeMissingError(method, "another key: a job may not call it")
        return Principal(claim.tenant_id, frozenset({Scope.DATA}), job=held)

    def _is_worker_key(self, secret: str) -> bool:
        known = self._worker_key_hash
        return known is not None and hmac.compare_digest(hash_secret(secret), known)
