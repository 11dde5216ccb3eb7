"""What the mirror still lacks."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from annals_storage.domain.indexing import (
    Backlog,
    ChunkRow,
    IndexableEvent,
    IndexableMemory,
    KnownChunks,
    MemoryEmbedding,
    MemoryTerms,
    OutboxEntry,
    OutboxKind,
    OutboxTotals,
)


class Outbox(Protocol):
    """Which rows the mirror still lacks, and the chunks that go with them."""

    async def claim(self, owner: str, *, limit: int, lease: timedelta) -> list[OutboxEntry]:
        """Lease at most `limit` entries: interactive before bulk, each tenant an equal part.

        An eighth is bulk whenever some waits.
        """

    async def renew(self, owner: str, entries: Sequence[OutboxEntry], *, lease: timedelta) -> None:
        """Prolong leases this owner still has, on entries of one tenant."""

    async def release(self, owner: str) -> int:
        """Give back every lease of this owner; return how many."""

    async def totals(self) -> list[OutboxTotals]:
        """Return the backlog of every lane over all tenants."""

    async def backlog(
        self,
        tenant_id: UUID,
        *,
        conversation_ids: Sequence[UUID] = (),
        kinds: Sequence[OutboxKind] = (),
        enqueued_until: datetime | None = None,
    ) -> Backlog:
        """Return the backlog of a tenant, or of some conversations or kinds, up to a moment."""

    async def count_chunks(self, tenant_id: UUID, embedding_model: str | None = None) -> int:
        """Return how many chunks and memories belong into the mirror, of a model or of all."""

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through (chunk_id, event_id) and twice each memory_id, ordered by the first."""

    async def text_bytes(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> dict[UUID, int]:
        """Return how many bytes of text there are to read of each event; unknown ones miss."""

    async def get_indexable(
        self, tenant_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, IndexableEvent]:
        """Return the events as they are now, by id; unknown ones are missing."""

    async def get_known_chunks(
        self,
        tenant_id: UUID,
        *,
        event_ids: Sequence[UUID],
        content_hashes: Sequence[bytes],
        embedding_model: str,
        other_models: Sequence[str] = (),
    ) -> KnownChunks:
        """Return the chunks these events have, and embeddings of texts that have one.

        Chunks by `other_models` are left out.
        """

    async def get_indexable_memories(
        self, tenant_id: UUID, memory_ids: Sequence[UUID], embedding_model: str
    ) -> dict[UUID, IndexableMemory]:
        """Return the memories as they are now, by id; deleted ones are missing."""

    async def save_memory_embeddings(
        self,
        tenant_id: UUID,
        embeddings: Sequence[MemoryEmbedding],
        embedding_model: str,
        *,
        is_serving: bool = True,
    ) -> None:
        """Keep these embeddings, save those of memories that have changed since.

        By a model that does not serve, they are kept beside the others.
        """

    async def save_memory_terms(self, tenant_id: UUID, terms: Sequence[MemoryTerms]) -> None:
        """Keep the words of these memories, save those of memories that have changed since."""

    async def is_conversation_deleted(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Whether it is deleted or does not exist."""

    async def enqueue_conversation_events(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Have every event and memory of a conversation mirrored again."""

    async def enqueue_tenant(self, tenant_id: UUID) -> int:
        """Have every conversation of a tenant mirrored again; return how many."""

    async def save_chunks(
        self,
        tenant_id: UUID,
        event_ids: Sequence[UUID],
        chunks: Sequence[ChunkRow],
        *,
        other_models: Sequence[str] = (),
    ) -> None:
        """Make these the only chunks of these events, but for those by `other_models`."""

    async def acknowledge(self, owner: str, entries: Sequence[OutboxEntry]) -> None:
        """Remove what is done, of one tenant; have lost leases mirrored again."""

    async def hold(self, owner: str, entries: Sequence[OutboxEntry], lease: timedelta) -> None:
        """Lease entries of one tenant for longer, save those that changed meanwhile."""

    async def fail(self, owner: str, entries: Sequence[OutboxEntry], error: str) -> None:
        """Pause entries of one tenant after a failure; park those that failed too often."""
