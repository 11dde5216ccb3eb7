"""What a vector engine does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol
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


class VectorWriter(Protocol):
    """What the indexer does with a vector engine; see VectorIndex."""

    async def ping(self) -> None:
        """Answer, or raise."""

    async def upsert(self, points: Sequence[ChunkPoint | MemoryPoint]) -> None:
        """Insert or replace points by `chunk_id` or `memory_id`."""

    async def delete_events(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        """Remove every chunk of these events."""

    async def delete_chunks(self, tenant_id: UUID, chunk_ids: Sequence[UUID]) -> None:
        """Remove these chunks."""

    async def delete_memories(self, tenant_id: UUID, memory_ids: Sequence[UUID]) -> None:
        """Remove these memories."""

    async def delete_conversation(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Remove every chunk and memory of this conversation."""


class VectorIndex(VectorWriter, Protocol):
    """A vector engine that mirrors chunks of events, and memories.

    Implementations are safe to use concurrently.

    Every method raises `EngineUnavailableError` when the engine does
    not answer. Writes are durable against a crash of the process once they return.
    """

    @property
    def audit(self) -> VectorAudit:
        """Its points as they are, for verification."""

    async def open(self) -> None:
        """Create or open the collection; safe to repeat."""

    async def close(self) -> None:
        """Flush and let go of everything."""

    async def query(self, query: VectorQuery) -> Mapping[Signal, list[ScoredChunk]]:
        """Return, per signal asked, at most `query.limit` chunks of the scope, best first."""

    async def query_memories(
        self, scope: MemoryScope, dense: DenseVector, limit: int
    ) -> list[ScoredMemory]:
        """Return at most `limit` memories of the scope, nearest first."""

    async def count(self, scope: SearchScope | MemoryScope) -> int:
        """Return the exact number of points in the scope."""

    async def count_points(self, tenant_id: UUID) -> int:
        """Return the exact number of points of a tenant, of every kind and branch."""

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through (chunk_id, event_id) and twice each memory_id, ordered by the first."""
