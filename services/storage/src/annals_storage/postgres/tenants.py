"""Tenants, agents and keys."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import errors
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from annals_common.errors import ResourceAlreadyExistsError, ResourceNotFoundError
from annals_common.principal import Scope
from annals_storage.domain.ownership import EndUserMode
from annals_storage.domain.tenancy import Agent, AgentChange, ApiKey, Credential, Tenant
from annals_storage.ports.paging import PageCursor
from annals_storage.postgres.database import Database, Params, sql
from annals_storage.postgres.rows import agent_from, api_key_from, tenant_from

_INSERT_TENANT = """
INSERT INTO annals.tenants (tenant_id, display_name)
VALUES (%(tenant_id)s, %(display_name)s)
RETURNING tenant_id, display_name, created_at
"""
_GET_TENANT = """
SELECT tenant_id, display_name, created_at FROM annals.tenants WHERE tenant_id = %(tenant_id)s
"""
_LIST_TENANTS = """
SELECT tenant_id, display_name, created_at
FROM annals.list_tenants(%(cursor_time)s, %(cursor_id)s, %(limit)s)
"""
_INSERT_AGENT = """
INSERT INTO annals.agents (tenant_id, agent_id, display_name, system_prompt, model, temperature,
                           tools_json, output_schema_json, end_user_mode, context_injection,
                           provider_logs_enabled, index_config)
VALUES (%(tenant_id)s, %(agent_id)s, %(display_name)s, %(system_prompt)s, %(model)s,
        %(temperature)s, %(tools_json)s, %(output_schema_json)s, %(end_user_mode)s,
        %(context_injection)s, %(provider_logs_enabled)s, %(index_config)s)
RETURNING *
"""
_GET_AGENT = """
SELECT * FROM annals.agents WHERE tenant_id = %(tenant_id)s AND agent_id = %(agent_id)s
"""
_LIST_AGENTS = """
SELECT * FROM annals.agents
WHERE tenant_id = %(tenant_id)s
  AND (%(cursor_id)s::uuid IS NULL OR (created_at, agent_id) > (%(cursor_time)s, %(cursor_id)s))
ORDER BY created_at, agent_id
LIMIT %(limit)s
"""
_INSERT_KEY = """
INSERT INTO annals.api_keys (tenant_id, api_key_id, key_hash, display_name, scopes, expires_at,
                             kind, agent_id)
VALUES (%(tenant_id)s, %(api_key_id)s, %(key_hash)s, %(display_name)s, %(scopes)s, %(expires_at)s,
        CASE WHEN %(agent_id)s::uuid IS NULL THEN 'secret' ELSE 'publishable' END, %(agent_id)s)
RETURNING api_key_id, display_name, scopes, created_at, expires_at, revoked_at, agent_id
"""
_FIND_KEY = """
SELECT k.api_key_id, k.display_name, k.scopes, k.created_at, k.expires_at, k.revoked_at, k.agent_id,
       a.end_user_mode
FROM annals.api_keys AS k
LEFT JOIN annals.agents AS a ON a.tenant_id = k.tenant_id AND a.agent_id = k.agent_id
WHERE k.tenant_id = %(tenant_id)s AND k.key_hash = %(key_hash)s
"""
_LIST_KEYS = """
SELECT api_key_id, display_name, scopes, created_at, expires_at, revoked_at, agent_id
FROM annals.api_keys
WHERE tenant_id = %(tenant_id)s
  AND (%(cursor_id)s::uuid IS NULL OR (created_at, api_key_id) > (%(cursor_time)s, %(cursor_id)s))
ORDER BY created_at, api_key_id
LIMIT %(limit)s
"""
_REVOKE_KEY = """
UPDATE annals.api_keys SET revoked_at = coalesce(revoked_at, now())
WHERE tenant_id = %(tenant_id)s AND api_key_id = %(api_key_id)s
RETURNING api_key_id, display_name, scopes, created_at, expires_at, revoked_at, agent_id
"""
_CHANGEABLE = (
    "display_name",
    "system_prompt",
    "model",
    "temperature",
    "tools_json",
    "output_schema_json",
    "end_user_mode",
    "context_injection",
    "provider_logs_enabled",
    "index_config",
)


class PostgresTenants:
    """The registry of tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, tenant_id: UUID, display_name: str) -> Tenant:
        """Insert a tenant."""
        params = {"tenant_id": tenant_id, "display_name": display_name}
        return tenant_from(await self._one(tenant_id, _INSERT_TENANT, params, "tenant", tenant_id))

    async def get(self, tenant_id: UUID) -> Tenant:
        """Raises ResourceNotFoundError."""
        params = {"tenant_id": tenant_id}
        return tenant_from(await self._one(tenant_id, _GET_TENANT, params, "tenant", tenant_id))

    async def page(self, *, cursor: PageCursor, limit: int) -> list[Tenant]:
        """Return one page of all tenants, oldest first."""
        [rows] = await self._database.run_untenanted((_LIST_TENANTS, _page({}, cursor, limit)))
        return [tenant_from(row) for row in rows]

    async def create_agent(self, tenant_id: UUID, agent: Agent) -> Agent:
        """Raises ResourceAlreadyExistsError, and ResourceNotFoundError without the tenant."""
        params = {
            **{name: getattr(agent, name) for name in agent.__slots__},
            "context_injection": Jsonb(agent.context_injection),
            "index_config": Jsonb(agent.index_config),
        }
        try:
            row = await self._one(
                tenant_id, _INSERT_AGENT, {**params, "tenant_id": tenant_id}, "tenant", tenant_id
            )
        except errors.UniqueViolation as error:
            raise ResourceAlreadyExistsError("agent", str(agent.agent_id)) from error
        return agent_from(row)

    async def get_agent(self, tenant_id: UUID, agent_id: UUID) -> Agent:
        """Raises ResourceNotFoundError."""
        params = {"tenant_id": tenant_id, "agent_id": agent_id}
        return agent_from(await self._one(tenant_id, _GET_AGENT, params, "agent", agent_id))

    async def update_agent(self, tenant_id: UUID, change: AgentChange) -> Agent:
        """Change the named fields. Raises ResourceNotFoundError."""
        values = {name: change.values.get(name) for name in _CHANGEABLE}
        params = {
            "tenant_id": tenant_id,
            "agent_id": change.agent_id,
            **values,
            "context_injection": Jsonb(values["context_injection"] or {}),
            "index_config": Jsonb(values["index_config"] or {}),
            **{f"set_{name}": name in change.values for name in _CHANGEABLE},
        }
        row = await self._one(tenant_id, sql("update_agent"), params, "agent", change.agent_id)
        return agent_from(row)

    async def page_agents(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[Agent]:
        """Return one page, oldest first."""
        params = _page({"tenant_id": tenant_id}, cursor, limit)
        [rows] = await self._database.run(tenant_id, (_LIST_AGENTS, params))
        return [agent_from(row) for row in rows]

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
        """Insert a key. Raises ResourceNotFoundError without the tenant, or the agent."""
        params = {
            "tenant_id": tenant_id,
            "api_key_id": api_key_id,
            "key_hash": key_hash,
            "display_name": display_name,
            "scopes": sorted(scopes),
            "expires_at": expires_at,
            "agent_id": agent_id,
        }
        missing = ("agent", agent_id) if agent_id else ("tenant", tenant_id)
        return api_key_from(await self._one(tenant_id, _INSERT_KEY, params, *missing))

    async def find_key(self, tenant_id: UUID, key_hash: bytes) -> Credential | None:
        """Return the key with this hash, valid or not."""
        params = {"tenant_id": tenant_id, "key_hash": key_hash}
        [rows] = await self._database.run(tenant_id, (_FIND_KEY, params))
        if not rows:
            return None
        mode = rows[0]["end_user_mode"]
        return Credential(api_key_from(rows[0]), EndUserMode(mode) if mode else None)

    async def page_keys(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[ApiKey]:
        """Return one page, oldest first."""
        params = _page({"tenant_id": tenant_id}, cursor, limit)
        [rows] = await self._database.run(tenant_id, (_LIST_KEYS, params))
        return [api_key_from(row) for row in rows]

    async def revoke_key(self, tenant_id: UUID, api_key_id: UUID) -> ApiKey:
        """Refuse the key from now on. Raises ResourceNotFoundError."""
        params = {"tenant_id": tenant_id, "api_key_id": api_key_id}
        return api_key_from(await self._one(tenant_id, _REVOKE_KEY, params, "api_key", api_key_id))

    async def _one(
        self, tenant_id: UUID, query: str, params: Params, resource: str, resource_id: UUID
    ) -> DictRow:
        try:
            [rows] = await self._database.run(tenant_id, (query, params))
        except errors.ForeignKeyViolation as error:
            raise ResourceNotFoundError(resource, str(resource_id)) from error
        if not rows:
            raise ResourceNotFoundError(resource, str(resource_id))
        return rows[0]


def _page(params: dict[str, Any], cursor: PageCursor, limit: int) -> Params:
    cursor_time, cursor_id = cursor or (None, None)
    return {**params, "cursor_time": cursor_time, "cursor_id": cursor_id, "limit": limit}
