"""Where tenants, agents and keys are kept."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol
from uuid import UUID

from annals_common.principal import Scope
from annals_storage.domain.signing import NewSigningKey, SigningKey
from annals_storage.domain.tenancy import Agent, AgentChange, ApiKey, Credential, Tenant
from annals_storage.ports.paging import PageCursor


class TenantStore(Protocol):
    """The registry of tenants, agents and keys."""

    async def create(self, tenant_id: UUID, display_name: str) -> Tenant:
        """Insert a tenant."""

    async def get(self, tenant_id: UUID) -> Tenant:
        """Raises ResourceNotFoundError."""

    async def page(self, *, cursor: PageCursor, limit: int) -> list[Tenant]:
        """Return one page of all tenants, oldest first."""

    async def create_agent(self, tenant_id: UUID, agent: Agent) -> Agent:
        """Raises ResourceAlreadyExistsError."""

    async def get_agent(self, tenant_id: UUID, agent_id: UUID) -> Agent:
        """Raises ResourceNotFoundError."""

    async def update_agent(self, tenant_id: UUID, change: AgentChange) -> Agent:
        """Raises ResourceNotFoundError."""

    async def page_agents(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[Agent]:
        """Return one page, oldest first."""

    async def create_key(
        self,
        tenant_id: UUID,
        *,
        api_key_id: UUID,
        key_hash: bytes,
        display_name: str,
        scopes: frozenset[Scope],
        expires_at: datetime | None,
        agent_id: UUID | None = None,
    ) -> ApiKey:
        """Insert a key; with an agent a publishable one."""

    async def find_key(self, tenant_id: UUID, key_hash: bytes) -> Credential | None:
        """Return the key with this hash, valid or not."""

    async def page_keys(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[ApiKey]:
        """Return one page, oldest first."""

    async def revoke_key(self, tenant_id: UUID, api_key_id: UUID) -> ApiKey:
        """Raises ResourceNotFoundError."""


class SigningKeyStore(Protocol):
    """Where the keys that sign user tokens are kept."""

    async def create(self, tenant_id: UUID, new: NewSigningKey) -> SigningKey:
        """Raises ResourceNotFoundError without the tenant."""

    async def find(self, tenant_id: UUID, signing_key_id: UUID) -> SigningKey | None:
        """Return the key, valid or not."""

    async def page(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[SigningKey]:
        """Return one page, oldest first."""

    async def revoke(self, tenant_id: UUID, signing_key_id: UUID) -> SigningKey:
        """Raises ResourceNotFoundError."""
