"""Credentials to principals, and who may call what."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import structlog

from annals_common.errors import CredentialsInvalidError, FieldInvalidError, ScopeMissingError
from annals_common.interceptors.chain import Call, Middleware
from annals_common.principal import Scope, current_principal, set_current_principal
from annals_common.validation import require_uuid
from annals_storage.commands.authentication import Authenticate

BEARER = "bearer "
MAX_CREDENTIAL_CHARS = 4_096


def authenticated(authenticate: Authenticate) -> Middleware:
    """Resolve `authorization: Bearer <key>` before anything else is looked at."""

    @asynccontextmanager
    async def middleware(call: Call) -> AsyncIterator[None]:
        principal = await authenticate(_secret(call))
        set_current_principal(principal)
        tenant = str(principal.tenant_id) if principal.tenant_id else "admin"
        structlog.contextvars.bind_contextvars(tenant_id=tenant)
        yield

    return middleware


def _secret(call: Call) -> str:
    header = call.metadata.get("authorization", "")
    if header[: len(BEARER)].lower() != BEARER or len(header) > MAX_CREDENTIAL_CHARS:
        raise CredentialsInvalidError
    return header[len(BEARER) :].strip()


def data_tenant(method: str) -> UUID:
    """Return the caller's tenant. Raises ScopeMissingError unless the key may use its data."""
    principal = current_principal()
    if principal.tenant_id is None or Scope.DATA not in principal.scopes:
        raise ScopeMissingError(method, "a tenant's key with the scope DATA")
    return principal.tenant_id


def require_installation_admin(method: str) -> None:
    """Raises ScopeMissingError unless the caller holds the installation's admin key."""
    if not current_principal().is_admin:
        raise ScopeMissingError(method, "the installation's admin key")


def administered_tenant(method: str, tenant_id: str) -> UUID:
    """Return the tenant to administer: the admin names it, a tenant's key implies it."""
    return _chosen_tenant(method, tenant_id, frozenset({Scope.TENANT_ADMIN}))


def readable_tenant(method: str, tenant_id: str) -> UUID:
    """Return the tenant whose agents to read; any key of the tenant may."""
    return _chosen_tenant(method, tenant_id, frozenset(Scope))


def _chosen_tenant(method: str, tenant_id: str, scopes: frozenset[Scope]) -> UUID:
    principal = current_principal()
    if principal.tenant_id is None:
        return require_uuid(tenant_id, "tenant_id")
    if not principal.scopes & scopes:
        raise ScopeMissingError(method, " or ".join(sorted(scope.upper() for scope in scopes)))
    if tenant_id and tenant_id.lower() != str(principal.tenant_id):
        raise FieldInvalidError("tenant_id", "must be empty with a tenant's key", tenant_id)
    return principal.tenant_id
