"""Credentials to principals, and who may call what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from uuid import UUID

import structlog

from annals_common.errors import (
    CredentialsInvalidError,
    FieldInvalidError,
    ResourceNotFoundError,
    ScopeMissingError,
    UserTokenRequiredError,
)
from annals_common.interceptors.chain import Call, Middleware
from annals_common.principal import (
    JobLease,
    Principal,
    Scope,
    current_principal,
    set_current_principal,
)
from annals_common.validation import require_uuid
from annals_storage.commands.authentication import Authenticate
from annals_storage.commands.end_users import USER_KEY
from annals_storage.domain.jobs import JobKind
from annals_storage.domain.ownership import EndUserMode, reaches
from annals_storage.handlers.end_users import claimed_end_user
from annals_storage.ports.ownership import OwnerStore

BEARER = "bearer "
MAX_CREDENTIAL_CHARS = 4_096


def authenticated(authenticate: Authenticate) -> Middleware:
    """Resolve `authorization: Bearer <key>` before anything else is looked at."""

    @asynccontextmanager
    async def middleware(call: Call) -> AsyncIterator[None]:
        principal = await authenticate(
            _secret(call), lambda: claimed_end_user(call), call.method_name
        )
        set_current_principal(principal)
        nobodys = "worker" if principal.is_worker else "admin"
        tenant = str(principal.tenant_id) if principal.tenant_id else nobodys
        structlog.contextvars.bind_contextvars(tenant_id=tenant)
        yield

    return middleware


def _secret(call: Call) -> str:
    header = call.metadata.get("authorization", "")
    if header[: len(BEARER)].lower() != BEARER or len(header) > MAX_CREDENTIAL_CHARS:
        raise CredentialsInvalidError
    return header[len(BEARER) :].strip()


def data_tenant(method: str) -> UUID:
    """Return the caller's tenant. Raises ScopeMissingError unless the key may use all its data:
    calls made for an end user may not.
    """
    principal = current_principal()
    if acts_for_end_user(principal):
        raise ScopeMissingError(method, "a secret key, without end-user metadata")
    return own_data_tenant(method)


def own_data_tenant(method: str) -> UUID:
    """Return the caller's tenant, also to an end user: who calls this must then check by
    `Access` what the end user reaches. Raises ScopeMissingError.
    """
    principal = current_principal()
    if principal.tenant_id is None or not (principal.publishable or Scope.DATA in principal.scopes):
        raise ScopeMissingError(method, "a tenant's key with the scope DATA")
    return principal.tenant_id


def refuse_publishable(method: str) -> None:
    """Raises ScopeMissingError for a publishable key, whichever end user it acts for."""
    if current_principal().publishable:
        raise ScopeMissingError(method, "a secret key")


def acts_for_end_user(principal: Principal) -> bool:
    """Whether the call is made for an end user and reaches only what is theirs."""
    return principal.publishable or principal.end_user is not None


class Access:
    """What a call reaches. Only calls made for an end user pay a read for it."""

    def __init__(self, owners: OwnerStore) -> None:
        self._owners = owners

    async def conversation(self, method: str, conversation_id: UUID) -> UUID:
        """Return the caller's tenant. Raises ScopeMissingError, and ResourceNotFoundError when
        the conversation is not the end user's.
        """
        tenant_id = own_data_tenant(method)
        if not await self.reachable([conversation_id]):
            raise ResourceNotFoundError("conversation", str(conversation_id))
        return tenant_id

    async def target(self, method: str, conversation_id: str, host_id: str = "") -> UUID | None:
        """Return the conversation an end user writes into, which must be there and theirs;
        without an end user None: whichever the request names.

        Raises ScopeMissingError, ResourceNotFoundError, and FieldInvalidError when it names none.
        """
        tenant_id = own_data_tenant(method)
        if not acts_for_end_user(current_principal()):
            return None
        if conversation_id or not host_id:
            wanted = require_uuid(conversation_id, "conversation_id")
            await self.conversation(method, wanted)
            return wanted
        found = await self._owners.get_by_host_id(tenant_id, host_id)
        if found is None or not await self.reachable([found.conversation_id]):
            raise ResourceNotFoundError("conversation", host_id)
        return found.conversation_id

    async def creation(self, method: str, agent_id: UUID | None) -> None:
        """Refuse a new conversation whose agent does not take the caller's user id. Raises as
        authentication does with a publishable key, which is bound to an agent.
        """
        principal = current_principal()
        whom = principal.end_user
        if whom is None or whom.user_id is None or principal.publishable:
            return
        if agent_id is None or principal.tenant_id is None:
            return
        mode = await self._owners.agent_mode(principal.tenant_id, agent_id)
        if mode is EndUserMode.ANONYMOUS:
            raise FieldInvalidError(USER_KEY, "is refused: the agent's end users are anonymous")
        if mode is EndUserMode.SIGNED and not whom.verified:
            raise UserTokenRequiredError(method)

    async def reachable(self, conversation_ids: Collection[UUID]) -> frozenset[UUID]:
        """Return those the caller reaches. Without an end user that is all, unread."""
        principal = current_principal()
        if not acts_for_end_user(principal) or principal.tenant_id is None:
            return frozenset(conversation_ids)
        owners = await self._owners.owners(principal.tenant_id, frozenset(conversation_ids))
        return frozenset(item.conversation_id for item in owners if reaches(principal, item))


def require_installation_admin(method: str) -> None:
    """Raises ScopeMissingError unless the caller holds the installation's admin key."""
    if not current_principal().is_admin:
        raise ScopeMissingError(method, "the installation's admin key")


def require_worker(method: str) -> None:
    """Raises ScopeMissingError unless the caller holds the installation's worker key."""
    if not current_principal().is_worker:
        raise ScopeMissingError(method, "the installation's worker key")


def leased_job(method: str, kind: JobKind | None = None) -> tuple[UUID, JobLease]:
    """Return the tenant and the lease by which a worker calls. Raises ScopeMissingError unless
    it is that of a job, and of this kind if one is given.
    """
    principal = current_principal()
    if principal.job is None or principal.tenant_id is None:
        raise ScopeMissingError(method, "the token of a leased job")
    if kind is not None and principal.job.kind != kind:
        raise ScopeMissingError(method, f"the token of a job of the kind {kind.upper()}")
    return principal.tenant_id, principal.job


def administered_tenant(method: str, tenant_id: str) -> UUID:
    """Return the tenant to administer: the admin names it, a tenant's key implies it."""
    return _chosen_tenant(method, tenant_id, frozenset({Scope.TENANT_ADMIN}))


def own_administered_tenant(method: str) -> UUID:
    """Return the caller's own tenant, which the key may administer. Raises ScopeMissingError."""
    principal = current_principal()
    if principal.tenant_id is None:
        raise ScopeMissingError(
            method, f"a tenant's key with the scope {Scope.TENANT_ADMIN.upper()}"
        )
    return administered_tenant(method, "")


def readable_tenant(method: str, tenant_id: str) -> UUID:
    """Return the tenant whose agents to read; any key of the tenant may."""
    return _chosen_tenant(method, tenant_id, frozenset(Scope))


def _chosen_tenant(method: str, tenant_id: str, scopes: frozenset[Scope]) -> UUID:
    principal = current_principal()
    if principal.is_admin:
        return require_uuid(tenant_id, "tenant_id")
    if principal.tenant_id is None or acts_for_end_user(principal) or not principal.scopes & scopes:
        raise ScopeMissingError(method, " or ".join(sorted(scope.upper() for scope in scopes)))
    if tenant_id and tenant_id.lower() != str(principal.tenant_id):
        raise FieldInvalidError("tenant_id", "must be empty with a tenant's key", tenant_id)
    return principal.tenant_id
