"""Creates tenants, agents and keys."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from annals_common.ids import uuid7
from annals_common.principal import Scope
from annals_storage.commands.authentication import Authenticate
from annals_storage.domain.tenancy import (
    KEY_PREFIX,
    PUBLISHABLE_PREFIX,
    Agent,
    AgentChange,
    ApiKey,
    Tenant,
    hash_secret,
    new_key_secret,
)
from annals_storage.ports.tenancy import TenantStore

FIRST_KEY_NAME = "first key"


class CreateApiKey:
    """Creates keys; the secret is returned once and kept nowhere."""

    def __init__(self, tenants: TenantStore) -> None:
        self._tenants = tenants

    async def __call__(
        self,
        tenant_id: UUID,
        *,
        display_name: str,
        scopes: frozenset[Scope],
        expires_at: datetime | None = None,
        agent_id: UUID | None = None,
    ) -> tuple[ApiKey, str]:
        """Return the key, with an agent a publishable one, and its secret.

        Raises ResourceNotFoundError without the tenant or the agent.
        """
        prefix = PUBLISHABLE_PREFIX if agent_id else KEY_PREFIX
        secret = new_key_secret(tenant_id, prefix=prefix)
        key = await self._tenants.create_key(
            tenant_id,
            api_key_id=uuid7(),
            key_hash=hash_secret(secret),
            display_name=display_name,
            scopes=scopes,
            expires_at=expires_at,
            agent_id=agent_id,
        )
        return key, secret


class CreateTenant:
    """Creates a tenant with a first key that may do everything in it."""

    def __init__(self, tenants: TenantStore) -> None:
        self._tenants = tenants
        self._create_key = CreateApiKey(tenants)

    async def __call__(self, display_name: str) -> tuple[Tenant, ApiKey, str]:
        """Return the tenant, its first key and that key's secret."""
        tenant = await self._tenants.create(uuid7(), display_name)
        key, secret = await self._create_key(
            tenant.tenant_id, display_name=FIRST_KEY_NAME, scopes=frozenset(Scope)
        )
        return tenant, key, secret


class RevokeApiKey:
    """Refuses a key from now on."""

    def __init__(self, tenants: TenantStore, authenticate: Authenticate) -> None:
        self._tenants = tenants
        self._authenticate = authenticate

    async def __call__(self, tenant_id: UUID, api_key_id: UUID) -> ApiKey:
        """Return the key as it is now. Raises ResourceNotFoundError."""
        key = await self._tenants.revoke_key(tenant_id, api_key_id)
        self._authenticate.forget_key(api_key_id)
        return key


class UpdateAgent:
    """Changes named fields of an agent."""

    def __init__(self, tenants: TenantStore, authenticate: Authenticate) -> None:
        self._tenants = tenants
        self._authenticate = authenticate

    async def __call__(self, tenant_id: UUID, change: AgentChange) -> Agent:
        """Return the agent as it is now. Raises ResourceNotFoundError."""
        agent = await self._tenants.update_agent(tenant_id, change)
        self._authenticate.forget_agent(agent.agent_id)
        return agent
