"""What belongs into the mirror, read for its verification."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from annals_storage.domain.events import EventType, Role
from annals_storage.domain.mirror import MirroredRow, made_of
from annals_storage.domain.search import NO_TERMS, NO_VECTOR, ChunkPoint, MemoryPoint
from annals_storage.postgres.database import Database, sql

_HELD = """
SELECT DISTINCT key FROM annals.outbox
WHERE tenant_id = %(tenant_id)s AND kind IN ('event', 'memory', 'conversation')
  AND key = ANY(%(keys)s)
"""


class PostgresMirroredRows:
    """`MirroredRows` over PostgreSQL, by one embedding model or, with None, by any."""

    def __init__(self, database: Database, embedding_model: str | None = None) -> None:
        self._database, self._model = database, embedding_model

    async def page(self, tenant_id: UUID, *, after: UUID | None, limit: int) -> list[UUID]:
        """Page through the ids of the points there should be, in order."""
        params = {"tenant_id": tenant_id, "after": after, "limit": limit, **self._by}
        [rows] = await self._database.run(tenant_id, (sql("list_mirrored"), params))
        return [row["point_id"] for row in rows]

    async def get(self, tenant_id: UUID, point_ids: Sequence[UUID]) -> dict[UUID, MirroredRow]:
        """Return the rows of these points as they are now, by id; others are missing."""
        params = {"tenant_id": tenant_id, "point_ids": list(point_ids), **self._by}
        chunks, memories = await self._database.run(
            tenant_id,
            (sql("get_mirrored_chunks"), params),
            (sql("get_mirrored_memories"), params),
        )
        found = {row["chunk_id"]: _chunk(tenant_id, row) for row in chunks}
        return found | {row["memory_id"]: _memory(tenant_id, row) for row in memories}

    async def waiting(self, tenant_id: UUID, keys: Collection[UUID]) -> set[UUID]:
        """Return those of these events, memories and conversations that the outbox holds."""
        params = {"tenant_id": tenant_id, "keys": list(keys)}
        [rows] = await self._database.run(tenant_id, (sql("waiting_keys"), params))
        return {row["key"] for row in rows}

    async def enqueue(self, tenant_id: UUID, source_ids: Collection[UUID]) -> int:
        """Have those of these ids that are events or memories mirrored again; return how many."""
        params = {"tenant_id": tenant_id, "ids": list(source_ids)}
        [rows] = await self._database.run(tenant_id, (sql("enqueue_sources"), params))
        return len(rows)

    @property
    def _by(self) -> dict[str, str | None]:
        return {"embedding_model": self._model}


class PostgresBuiltRows(PostgresMirroredRows):
    """The same for what is being built, which parked changes do not hold up: they wait, too."""

    async def waiting(self, tenant_id: UUID, keys: Collection[UUID]) -> set[UUID]:
        """Return those of these events, memories and conversations that the outbox holds."""
        params = {"tenant_id": tenant_id, "keys": list(keys)}
        [rows] = await self._database.run(tenant_id, (_HELD, params))
        return {row["key"] for row in rows}


def _chunk(tenant_id: UUID, row: dict[str, Any]) -> MirroredRow:
    point = ChunkPoint(
        chunk_id=row["chunk_id"],
        tenant_id=tenant_id,
        conversation_id=row["conversation_id"],
        event_id=row["event_id"],
        seq=row["seq"],
        chunk_index=row["chunk_index"],
        event_type=EventType(row["type"]),
        event_time=row["event_time"],
        dense=NO_VECTOR,
        bm25=NO_TERMS,
        role=Role(row["role"]) if row["role"] else None,
        tool_name=row["tool_name"],
        branch=row["branch"],
        current=row["current"],
        made_of=made_of(row["content_hash"], row["embedding_model"]),
        **_owner(row),
    )
    return MirroredRow(row["event_id"], point)


def _memory(tenant_id: UUID, row: dict[str, Any]) -> MirroredRow:
    point = MemoryPoint(
        memory_id=row["memory_id"],
        tenant_id=tenant_id,
        conversation_id=row["conversation_id"],
        dense=NO_VECTOR,
        tags=tuple(row["tags"]),
        made_of=made_of(row["embedding"], row["embedding_model"] or ""),
        **_owner(row),
    )
    return MirroredRow(row["memory_id"], point)


def _owner(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("agent_id", "user_id", "session_id")}
