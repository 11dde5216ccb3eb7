"""Reads and writes memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import errors
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from annals_common.errors import ResourceNotFoundError
from annals_storage.domain.memories import (
    FoundMemory,
    Memory,
    MemoryChange,
    MemoryQuery,
    NewMemory,
    StoreOutcome,
    StoreVerdict,
)
from annals_storage.postgres.database import Database, Params, sql

MAX_ATTEMPTS = 5
_CHANGEABLE = ("content", "tags", "metadata")
_RACES = (errors.UniqueViolation, errors.DeadlockDetected)
_CONVERSATION_IS_VISIBLE = """
SELECT EXISTS (
  SELECT FROM annals.conversations
  WHERE tenant_id = %(tenant_id)s AND conversation_id = %(conversation_id)s
    AND deleted_at IS NULL
) AS visible
"""


class PostgresMemories:
    """Memories of a tenant. Those of deleted conversations are not visible."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def store(self, tenant_id: UUID, new: NewMemory) -> StoreOutcome:
        """Insert, or find what an earlier call stored.

        A race with another writer (same new key, same new id) rolls back and is decided anew.
        """
        params = _store_params(tenant_id, new)
        for _ in range(MAX_ATTEMPTS - 1):
            try:
                return await self._store(tenant_id, params)
            except _RACES:
                continue
        return await self._store(tenant_id, params)

    async def _store(self, tenant_id: UUID, params: Params) -> StoreOutcome:
        _, [row] = await self._database.run(
            tenant_id, (sql("append_lock"), params), (sql("store_memory"), params)
        )
        memory = _memory_from(row) if row["memory_id"] else None
        return StoreOutcome(StoreVerdict(row["verdict"]), memory)

    async def get(self, tenant_id: UUID, memory_ids: Sequence[UUID]) -> dict[UUID, FoundMemory]:
        """Return the visible ones by id."""
        params = {"tenant_id": tenant_id, "memory_ids": list(memory_ids)}
        [rows] = await self._database.run(tenant_id, (sql("get_memories"), params))
        return {row["memory_id"]: _found_from(row) for row in rows}

    async def page(self, tenant_id: UUID, query: MemoryQuery) -> list[Memory]:
        """Return one page, newest first. Raises ResourceNotFoundError without the conversation."""
        cursor_time, cursor_id = query.cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            "conversation_id": query.conversation_id,
            "tags": list(query.tags),
            "limit": query.limit,
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
        }
        [[check], rows] = await self._database.run(
            tenant_id, (_CONVERSATION_IS_VISIBLE, params), (sql("list_memories"), params)
        )
        if query.conversation_id is not None and not check["visible"]:
            raise ResourceNotFoundError("conversation", str(query.conversation_id))
        return [_memory_from(row) for row in rows]

    async def update(
        self, tenant_id: UUID, change: MemoryChange
    ) -> tuple[Memory | None, Memory | None]:
        """Apply the change; return (changed, current). `changed` is None when nothing matched."""
        params = {**_change_params(tenant_id, change), "memory_ids": [change.memory_id]}
        _, changed, current = await self._database.run(
            tenant_id,
            (sql("lock_conversation_of_memory"), params),
            (sql("update_memory"), params),
            (sql("get_memories"), params),
        )
        return _first(changed), _first(current)

    async def delete(self, tenant_id: UUID, memory_id: UUID) -> bool:
        """Delete it for good; return whether there was one."""
        params = {"tenant_id": tenant_id, "memory_id": memory_id}
        _, gone = await self._database.run(
            tenant_id, (sql("lock_conversation_of_memory"), params), (sql("delete_memory"), params)
        )
        return bool(gone)


def _store_params(tenant_id: UUID, new: NewMemory) -> Params:
    return {
        "tenant_id": tenant_id,
        **{name: getattr(new, name) for name in NewMemory.__slots__},
        "conversation_ids": [new.conversation_id],
        "tags": list(new.tags),
        "metadata": Jsonb(new.metadata),
    }


def _change_params(tenant_id: UUID, change: MemoryChange) -> dict[str, Any]:
    values = {name: change.values.get(name) for name in _CHANGEABLE}
    if values["tags"] is not None:
        values["tags"] = list(values["tags"])
    if values["metadata"] is not None:
        values["metadata"] = Jsonb(values["metadata"])
    return {
        "tenant_id": tenant_id,
        "memory_id": change.memory_id,
        "expected_version": change.expected_version,
        "embedding": change.embedding,
        "embedding_model": change.embedding_model,
        **values,
        **{f"set_{name}": name in change.values for name in _CHANGEABLE},
    }


def _first(rows: Sequence[DictRow]) -> Memory | None:
    return _memory_from(rows[0]) if rows else None


def _memory_from(row: DictRow) -> Memory:
    values = {name: row[name] for name in Memory.__slots__}
    return Memory(**{**values, "tags": tuple(row["tags"])})


def _found_from(row: DictRow) -> FoundMemory:
    return FoundMemory(
        memory=_memory_from(row),
        agent_id=row["agent_id"],
        user_id=row["user_id"],
        session_id=row["session_id"],
    )
