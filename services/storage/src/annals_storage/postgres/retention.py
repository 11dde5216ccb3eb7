"""Retention policies, and what they make due."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow

from annals_common.errors import ResourceNotFoundError
from annals_storage.domain.erasure import Counts
from annals_storage.domain.retention import (
    DEFAULT_SEARCH_LOG_DAYS,
    TENANT_POLICY,
    MaintenanceDue,
    RetentionPolicy,
)
from annals_storage.postgres.database import Database, sql

_DAYS = (
    "archive_after_days",
    "cold_after_days",
    "erase_after_days",
    "erase_deleted_after_days",
    "provider_log_days",
    "search_log_days",
)
_TRY_LOCK = """
SELECT pg_try_advisory_xact_lock(
  hashtextextended('maintain ' || %(tenant_id)s::text, 0)) AS held
"""
_SET = """
INSERT INTO annals.retention_policies
  (tenant_id, agent_id, archive_after_days, cold_after_days, erase_after_days,
   erase_deleted_after_days, provider_log_days, search_log_days)
SELECT %(tenant_id)s, %(agent_id)s::uuid, %(archive_after_days)s, %(cold_after_days)s,
       %(erase_after_days)s, %(erase_deleted_after_days)s, %(provider_log_days)s,
       %(search_log_days)s
WHERE %(agent_id)s = %(tenant_policy)s::uuid OR EXISTS (
  SELECT FROM annals.agents WHERE tenant_id = %(tenant_id)s AND agent_id = %(agent_id)s)
ON CONFLICT (tenant_id, agent_id) DO UPDATE
SET archive_after_days = excluded.archive_after_days,
    cold_after_days = excluded.cold_after_days,
    erase_after_days = excluded.erase_after_days,
    erase_deleted_after_days = excluded.erase_deleted_after_days,
    provider_log_days = excluded.provider_log_days,
    search_log_days = excluded.search_log_days, updated_at = now()
RETURNING *
"""
_GET = """
SELECT * FROM annals.retention_policies
WHERE tenant_id = %(tenant_id)s AND agent_id = %(agent_id)s
"""
_PAGE = """
SELECT * FROM annals.retention_policies
WHERE tenant_id = %(tenant_id)s AND (%(after)s::uuid IS NULL OR agent_id > %(after)s)
ORDER BY agent_id LIMIT %(limit)s
"""
_DELETE = """
DELETE FROM annals.retention_policies
WHERE tenant_id = %(tenant_id)s AND agent_id = %(agent_id)s
RETURNING agent_id
"""


class PostgresRetention:
    """Policies of a tenant. Ages are measured against a `now` that the caller gives."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def set(self, tenant_id: UUID, policy: RetentionPolicy) -> RetentionPolicy:
        """Insert or replace it. Raises ResourceNotFoundError without the agent."""
        params = {
            "tenant_id": tenant_id,
            "agent_id": policy.agent_id or TENANT_POLICY,
            "tenant_policy": TENANT_POLICY,
            **{name: getattr(policy, name) for name in _DAYS},
        }
        [rows] = await self._database.run(tenant_id, (_SET, params))
        if not rows:
            raise ResourceNotFoundError("agent", str(policy.agent_id))
        return _policy(rows[0])

    async def get(self, tenant_id: UUID, agent_id: UUID | None) -> RetentionPolicy | None:
        """Return the policy of an agent, or of the tenant."""
        params = {"tenant_id": tenant_id, "agent_id": agent_id or TENANT_POLICY}
        [rows] = await self._database.run(tenant_id, (_GET, params))
        return _policy(rows[0]) if rows else None

    async def page(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[RetentionPolicy]:
        """Return one page: the tenant's own, then by agent id."""
        params = {"tenant_id": tenant_id, "after": after, "limit": limit}
        [rows] = await self._database.run(tenant_id, (_PAGE, params))
        return [_policy(row) for row in rows]

    async def delete(self, tenant_id: UUID, agent_id: UUID | None) -> bool:
        """Whether there was one."""
        params = {"tenant_id": tenant_id, "agent_id": agent_id or TENANT_POLICY}
        [rows] = await self._database.run(tenant_id, (_DELETE, params))
        return bool(rows)

    @asynccontextmanager
    async def tenant_lock(self, tenant_id: UUID) -> AsyncIterator[bool]:
        """Hold the tenant for one maintenance; False: another one holds it."""
        async with self._database.transaction(tenant_id) as tx:
            [row] = await tx.run(_TRY_LOCK, {"tenant_id": tenant_id})
            yield bool(row["held"])

    async def archive(self, tenant_id: UUID, now: datetime, *, limit: int) -> int:
        """Archive some conversations that are due; return how many."""
        params = {"tenant_id": tenant_id, "now": now, "limit": limit}
        [rows] = await self._database.run(tenant_id, (sql("archive_due"), params))
        return len(rows)

    async def due(
        self,
        tenant_id: UUID,
        kind: MaintenanceDue,
        now: datetime,
        *,
        after: UUID | None,
        limit: int,
    ) -> list[UUID]:
        """Return conversations due, by id, after an id."""
        params = {
            "tenant_id": tenant_id,
            "kind": kind.value,
            "now": now,
            "after": after,
            "limit": limit,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_due"), params))
        return [row["conversation_id"] for row in rows]

    async def count_due(self, tenant_id: UUID, kind: MaintenanceDue, now: datetime) -> int:
        """Return how many conversations are due."""
        params = {
            "tenant_id": tenant_id,
            "kind": kind.value,
            "now": now,
            "after": None,
            "limit": None,
        }
        counting = f"SELECT count(*) AS due FROM ({sql('list_due')}) AS found"  # noqa: S608
        [[row]] = await self._database.run(tenant_id, (counting, params))
        return int(row["due"])

    async def expire_logs(self, tenant_id: UUID, now: datetime, *, limit: int) -> Counts:
        """Remove some expired provider logs and searches; return the counts of each kind."""
        [[row]] = await self._database.run(
            tenant_id, (sql("expire_logs"), _log_params(tenant_id, now, limit))
        )
        return row

    async def count_expired_logs(self, tenant_id: UUID, now: datetime) -> Counts:
        """Return how many provider logs and searches have expired."""
        [[row]] = await self._database.run(
            tenant_id, (sql("count_expired_logs"), _log_params(tenant_id, now, None))
        )
        return row


def _log_params(tenant_id: UUID, now: datetime, limit: int | None) -> dict[str, object]:
    return {
        "tenant_id": tenant_id,
        "now": now,
        "limit": limit,
        "default_search_log_days": DEFAULT_SEARCH_LOG_DAYS,
    }


def _policy(row: DictRow) -> RetentionPolicy:
    agent_id = None if row["agent_id"] == TENANT_POLICY else row["agent_id"]
    values = {name: row[name] for name in (*_DAYS, "updated_at")}
    return RetentionPolicy(agent_id, **values)
