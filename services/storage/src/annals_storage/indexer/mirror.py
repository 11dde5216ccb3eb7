"""Makes the mirror match the rows of one tenant. Level-triggered: reads, then writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from annals_storage.domain.indexing import IndexableEvent, OutboxEntry, OutboxKind
from annals_storage.indexer.chunker import CutChunk, cut, embed
from annals_storage.indexer.metrics import EMBED_SECONDS, EMBEDDED_CHUNKS, INDEXED_EVENTS
from annals_storage.ports import Embedder, Outbox, SparseEncoder, VectorIndex


class Mirror:
    """Brings events and conversations into the engine, or takes them out."""

    def __init__(
        self, *, outbox: Outbox, vectors: VectorIndex, embedder: Embedder, sparse: SparseEncoder
    ) -> None:
        self._outbox, self._vectors = outbox, vectors
        self._embedder, self._sparse = embedder, sparse

    async def refresh(self, entries: Sequence[OutboxEntry]) -> None:
        """Mirror these entries of one tenant as their rows are now; safe to repeat."""
        for entry in entries:
            if entry.kind is OutboxKind.CONVERSATION:
                await self._refresh_conversation(entry)
        events = [entry for entry in entries if entry.kind is OutboxKind.EVENT]
        if events:
            await self._refresh_events(events)

    async def _refresh_conversation(self, entry: OutboxEntry) -> None:
        tenant_id, conversation_id = entry.tenant_id, entry.conversation_id
        if await self._outbox.is_conversation_deleted(tenant_id, conversation_id):
            await self._vectors.delete_conversation(tenant_id, conversation_id)
        else:
            await self._outbox.enqueue_conversation_events(tenant_id, conversation_id)

    async def _refresh_events(self, entries: Sequence[OutboxEntry]) -> None:
        tenant_id = entries[0].tenant_id
        found = await self._outbox.get_indexable(tenant_id, [entry.key for entry in entries])
        present = {key: item for key, item in found.items() if not item.deleted}
        stale = [e.key for e in entries if e.key not in present or e.generation > 1]
        if stale:
            await self._vectors.delete_events(tenant_id, stale)
        await self._write(tenant_id, list(present.values()))
        INDEXED_EVENTS.inc(len(entries))

    async def _write(self, tenant_id: UUID, sources: Sequence[IndexableEvent]) -> None:
        # A long text takes a second to cut: not on the event loop that serves.
        chunks = await asyncio.to_thread(self._cut, sources)
        with EMBED_SECONDS.time():
            rows, points = await embed(tenant_id, chunks, self._embedder, self._sparse)
        EMBEDDED_CHUNKS.inc(len(rows))
        await self._outbox.save_chunks(tenant_id, [s.event.event_id for s in sources], rows)
        await self._vectors.upsert(points)

    def _cut(self, sources: Sequence[IndexableEvent]) -> list[CutChunk]:
        return [chunk for source in sources for chunk in cut(source, self._embedder)]
