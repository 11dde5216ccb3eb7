"""What PostgreSQL forgets, and the receipts of it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg import errors
from psycopg.types.json import Jsonb

from annals_storage.domain.erasure import Counts
from annals_storage.postgres.database import Database, Params, Transaction, sql

_UNLIMITED = "SET LOCAL statement_timeout = 0"
"""Counting and forgetting read whole tables of a tenant: rare, and not to be cut short."""
_CONVERSATION_OF = """
SELECT conversation_id FROM annals.events
WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s
"""
_EXISTS = """
SELECT EXISTS (
  SELECT FROM annals.conversations
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
) AS found
"""
_IS_COLD = """
SELECT cold_segment_id IS NOT NULL AS cold FROM annals.events
WHERE tenant_id = %(tenant_id)s AND event_id = %(event_id)s
"""
_HIDE = """
UPDATE annals.conversations
SET deleted_at = coalesce(deleted_at, now()), version = version + 1, updated_at = now()
WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
"""
_OF_USER = """
SELECT conversation_id FROM annals.conversations
WHERE tenant_id = %(tenant_id)s
  AND (user_id = %(user_id)s OR session_id IN (
    SELECT session_id FROM annals.session_merges
    WHERE tenant_id = %(tenant_id)s AND user_id = %(user_id)s))
LIMIT %(limit)s
"""
_OF_TENANT = """
SELECT conversation_id FROM annals.conversations WHERE tenant_id = %(tenant_id)s LIMIT %(limit)s
"""


class PostgresErasure:
    """Erases rows. Every count reaches the receipt in the transaction that erases."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def conversation_of(self, tenant_id: UUID, event_id: UUID) -> UUID | None:
        """Return where an event is, erased or not."""
        params = {"tenant_id": tenant_id, "event_id": event_id}
        [rows] = await self._database.run(tenant_id, (_CONVERSATION_OF, params))
        return rows[0]["conversation_id"] if rows else None

    async def exists(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Whether the conversation exists, deleted or not."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        [[row]] = await self._database.run(tenant_id, (_EXISTS, params))
        return bool(row["found"])

    async def copies_in_forks(
        self, tenant_id: UUID, conversation_id: UUID, event_id: UUID | None = None
    ) -> int:
        """Return how many events of forks are copies of the event, or of any in it."""
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "event_id": event_id,
        }
        return (await self._counted("copies_in_forks", params))["copies"]

    async def erase_event(self, tenant_id: UUID, receipt_id: UUID, event_id: UUID) -> bool:
        """Erase it; False: its words are in cold storage and must be brought back first."""
        conversation_id = await self.conversation_of(tenant_id, event_id)
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "event_id": event_id,
        }
        async with self._database.transaction(tenant_id) as tx:
            await tx.run(sql("erase_lock"), params)
            cold = await tx.run(_IS_COLD, params)
            if cold and cold[0]["cold"]:
                return False
            [counts] = await tx.run(sql("erase_event"), params)
            await _add(tx, tenant_id, receipt_id, counts)
        return True

    async def hide(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Mark the conversation deleted, so that nothing is added to it any more."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        await self._database.run(tenant_id, (sql("erase_lock"), params), (_HIDE, params))

    async def erase_events(
        self, tenant_id: UUID, receipt_id: UUID, conversation_id: UUID, *, limit: int
    ) -> int:
        """Erase that many events of a conversation, rows and all; return how many there were."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "limit": limit}
        async with self._database.transaction(tenant_id) as tx:
            await tx.run(sql("erase_lock"), params)
            return await _erase_events(tx, receipt_id, params)

    async def erase_conversation(
        self, tenant_id: UUID, receipt_id: UUID, conversation_id: UUID
    ) -> None:
        """Erase the conversation with everything that is left in it."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "limit": None}
        async with self._database.transaction(tenant_id) as tx:
            await tx.run(sql("erase_lock"), params)
            await _erase_events(tx, receipt_id, params)
            await _lock_search_log(tx, tenant_id)
            await tx.run(sql("erase_jobs"), params)
            [counts] = await tx.run(sql("erase_conversation"), params)
            await _add(tx, tenant_id, receipt_id, counts)

    async def conversations_of_user(
        self, tenant_id: UUID, user_id: str, *, limit: int
    ) -> list[UUID]:
        """Return some conversations of the user and of the sessions merged into the user."""
        params = {"tenant_id": tenant_id, "user_id": user_id, "limit": limit}
        [rows] = await self._database.run(tenant_id, (_OF_USER, params))
        return [row["conversation_id"] for row in rows]

    async def conversations_of_tenant(self, tenant_id: UUID, *, limit: int) -> list[UUID]:
        """Return some conversations."""
        params = {"tenant_id": tenant_id, "limit": limit}
        [rows] = await self._database.run(tenant_id, (_OF_TENANT, params))
        return [row["conversation_id"] for row in rows]

    async def erase_user(self, tenant_id: UUID, receipt_id: UUID, user_id: str) -> None:
        """Erase what names the user outside of the user's conversations."""
        params = {"tenant_id": tenant_id, "user_id": user_id}
        async with self._database.transaction(tenant_id) as tx:
            await tx.run(_UNLIMITED, {})
            await _lock_search_log(tx, tenant_id)
            [counts] = await tx.run(sql("erase_user"), params)
            await _add(tx, tenant_id, receipt_id, counts)

    async def lock_out(self, tenant_id: UUID, receipt_id: UUID) -> list[UUID]:
        """Erase the tenant's keys; return their ids."""
        async with self._database.transaction(tenant_id) as tx:
            [row] = await tx.run(sql("erase_keys"), {"tenant_id": tenant_id})
            ids: list[UUID] = row["api_key_ids"]
            await _add(tx, tenant_id, receipt_id, {"api_keys": len(ids)})
        return ids

    async def erase_tenant(self, tenant_id: UUID, receipt_id: UUID) -> bool:
        """Erase what is left of a tenant; False: conversations were added meanwhile."""
        try:
            async with self._database.transaction(tenant_id) as tx:
                await _lock_search_log(tx, tenant_id)
                [counts] = await tx.run(sql("erase_tenant"), {"tenant_id": tenant_id})
                await _add(tx, tenant_id, receipt_id, counts)
        except errors.ForeignKeyViolation:
            return False
        return True

    async def remaining_of_event(self, tenant_id: UUID, event_id: UUID) -> Counts:
        """Count what is left of an event."""
        return await self._counted(
            "remaining_of_event", {"tenant_id": tenant_id, "event_id": event_id}
        )

    async def remaining_of_conversation(self, tenant_id: UUID, conversation_id: UUID) -> Counts:
        """Count what is left of a conversation."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        return await self._counted("remaining_of_conversation", params)

    async def remaining_of_user(self, tenant_id: UUID, user_id: str) -> Counts:
        """Count what is left of a user."""
        return await self._counted(
            "remaining_of_user", {"tenant_id": tenant_id, "user_id": user_id}
        )

    async def remaining_of_tenant(self, tenant_id: UUID) -> Counts:
        """Count what is left of a tenant, receipts aside."""
        return await self._counted("remaining_of_tenant", {"tenant_id": tenant_id})

    async def _counted(self, name: str, params: Params) -> dict[str, int]:
        async with self._database.transaction(params["tenant_id"]) as tx:
            await tx.run(_UNLIMITED, {})
            [row] = await tx.run(sql(name), params)
        return row


async def _lock_search_log(tx: Transaction, tenant_id: UUID) -> None:
    await tx.run(sql("search_log_lock"), {"tenant_id": tenant_id, "shared": False})


async def _erase_events(tx: Transaction, receipt_id: UUID, params: Params) -> int:
    [counts] = await tx.run(sql("erase_events"), params)
    rows = int(counts.pop("rows_erased"))
    await _add(tx, params["tenant_id"], receipt_id, counts)
    return rows


async def _add(tx: Transaction, tenant_id: UUID, receipt_id: UUID, counts: Counts) -> None:
    await tx.run(sql("add_erased"), added(tenant_id, receipt_id, counts))


def added(tenant_id: UUID, receipt_id: UUID, counts: Counts) -> dict[str, Any]:
    """Return the parameters of add_erased.sql."""
    return {
        "tenant_id": tenant_id,
        "receipt_id": receipt_id,
        "counts": Jsonb({kind: count or 0 for kind, count in counts.items()}),
    }
