"""Several collections of the vector engine as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

from annals_storage.domain.search import (
    ChunkPoint,
    DenseVector,
    MemoryPoint,
    MemoryScope,
    ScoredChunk,
    ScoredMemory,
    SearchScope,
    Signal,
    VectorQuery,
)
from annals_storage.ports.vector_audit import VectorAudit
from annals_storage.ports.vectors import VectorIndex


class WrittenTogether:
    """`VectorWriter` into every collection there is, which hold the same points."""

    def __init__(self, every: Callable[[], Sequence[VectorIndex]]) -> None:
        self._every = every

    async def ping(self) -> None:
        """Answer, or raise."""
        await asyncio.gather(*[each.ping() for each in self._every()])

    async def upsert(self, points: Sequence[ChunkPoint | MemoryPoint]) -> None:
        """Insert or replace points."""
        await asyncio.gather(*[each.upsert(points) for each in self._every()])

    async def delete_events(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        """Remove every chunk of these events."""
        await asyncio.gather(*[each.delete_events(tenant_id, event_ids) for each in self._every()])

    async def delete_chunks(self, tenant_id: UUID, chunk_ids: Sequence[UUID]) -> None:
        """Remove these chunks."""
        await asyncio.gather(*[each.delete_chunks(tenant_id, chunk_ids) for each in self._every()])

    async def delete_memories(self, tenant_id: UUID, memory_ids: Sequence[UUID]) -> None:
        """Remove these memories."""
        await asyncio.gather(
            *[each.delete_memories(tenant_id, memory_ids) for each in self._every()]
        )

    async def delete_conversation(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Remove every chunk and memory of this conversation."""
        await asyncio.gather(
            *[each.delete_conversation(tenant_id, conversation_id) for each in self._every()]
        )


class ServingVectors(WrittenTogether):
    """`VectorIndex` over whichever collection serves now. Deletes reach every one there is.

    Opening and closing are left to who owns the collections.
    """

    def __init__(
        self, serving: Callable[[], VectorIndex], every: Callable[[], Sequence[VectorIndex]]
    ) -> None:
        super().__init__(every)
        self._serving = serving

    @property
    def audit(self) -> VectorAudit:
        """The points of the one that serves."""
        return self._serving().audit

    async def open(self) -> None:
        """Nothing: it is open."""

    async def close(self) -> None:
        """Nothing: its owner closes it."""

    async def ping(self) -> None:
        """Answer, or raise."""
        await self._serving().ping()

    async def upsert(self, points: Sequence[ChunkPoint | MemoryPoint]) -> None:
        """Insert or replace points of the one that serves."""
        await self._serving().upsert(points)

    async def query(self, query: VectorQuery) -> Mapping[Signal, list[ScoredChunk]]:
        """Return the best chunks per signal."""
        return await self._serving().query(query)

    async def query_memories(
        self, scope: MemoryScope, dense: DenseVector, limit: int
    ) -> list[ScoredMemory]:
        """Return the nearest memories of the scope."""
        return await self._serving().query_memories(scope, dense, limit)

    async def count(self, scope: SearchScope | MemoryScope) -> int:
        """Return the exact number of points in the scope."""
        return await self._serving().count(scope)

    async def count_points(self, tenant_id: UUID) -> int:
        """Return the exact number of points of a tenant."""
        return await self._serving().count_points(tenant_id)

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through (chunk_id, event_id) and twice each memory_id, ordered by the first."""
        return await self._serving().list_chunks(tenant_id, after=after, limit=limit)
