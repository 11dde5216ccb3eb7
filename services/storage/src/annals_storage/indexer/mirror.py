"""Makes the mirror match the rows of one tenant. Level-triggered: reads, then writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from annals_storage.domain.generations import ALONE, MirrorPlace
from annals_storage.domain.indexing import IndexableEvent, KnownChunks, OutboxEntry, OutboxKind
from annals_storage.indexer.chunker import MAX_CHUNKS, CutChunk, chunk_point, chunk_row, cut
from annals_storage.indexer.embeddings import Embedding, embeddings_by_hash
from annals_storage.indexer.memories import MemoryMirror
from annals_storage.indexer.metrics import INDEXED_EVENTS, REUSED_CHUNKS, STAGE_SECONDS
from annals_storage.ports.embedding import Embedder, SparseEncoder
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.vectors import VectorWriter


class Mirror:
    """Brings events, conversations and memories into the engine, or takes them out."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        vectors: VectorWriter,
        embedder: Embedder,
        sparse: SparseEncoder,
        max_chunks: int = MAX_CHUNKS,
        place: MirrorPlace = ALONE,
    ) -> None:
        """`max_chunks`: of an event; what its later words say is not searched."""
        self._outbox, self._vectors = outbox, vectors
        self._embedder, self._sparse = embedder, sparse
        self._max_chunks, self._place = max_chunks, place
        self._memories = MemoryMirror(
            outbox=outbox, vectors=vectors, embedder=embedder, place=place
        )

    async def refresh(self, entries: Sequence[OutboxEntry]) -> None:
        """Mirror these entries of one tenant as their rows are now; safe to repeat."""
        for entry in entries:
            if entry.kind is OutboxKind.CONVERSATION:
                await self._refresh_conversation(entry)
        events = [entry for entry in entries if entry.kind is OutboxKind.EVENT]
        if events:
            await self._refresh_events(events)
        memories = [entry.key for entry in entries if entry.kind is OutboxKind.MEMORY]
        if memories:
            await self._memories.refresh(entries[0].tenant_id, memories)

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
        if gone := [entry.key for entry in entries if entry.key not in present]:
            await self._vectors.delete_events(tenant_id, gone)
        # Only of these might the engine hold points that PostgreSQL no longer knows of.
        unsure = [e.key for e in entries if e.key in present and _may_be_half_done(e)]
        await self._write(tenant_id, list(present.values()), unsure)
        INDEXED_EVENTS.inc(len(entries))

    async def _write(
        self, tenant_id: UUID, sources: Sequence[IndexableEvent], unsure: Sequence[UUID]
    ) -> None:
        # A long text takes a second to cut: not on the event loop that serves.
        with STAGE_SECONDS.labels("cut").time():
            chunks = await asyncio.to_thread(self._cut, sources)
        event_ids = [source.event.event_id for source in sources]
        known = await self._known(tenant_id, event_ids, chunks)
        embedded = await self._embedded(chunks, known)
        model, place = self._embedder.model, self._place
        rows = [chunk_row(c, e, model, place.chunks_of) for c, e in embedded]
        points = [
            chunk_point(tenant_id, chunk, row, embedding.dense, self._sparse)
            for (chunk, embedding), row in zip(embedded, rows, strict=True)
        ]
        await self._outbox.save_chunks(tenant_id, event_ids, rows, other_models=place.other_models)
        # Points go last and come back at once: between the two, searches miss them.
        await self._vectors.delete_events(tenant_id, unsure)
        await self._vectors.upsert(points)
        former = known.chunk_ids - {row.chunk_id for row in rows}
        await self._vectors.delete_chunks(tenant_id, sorted(former))

    async def _known(
        self, tenant_id: UUID, event_ids: Sequence[UUID], chunks: Sequence[CutChunk]
    ) -> KnownChunks:
        return await self._outbox.get_known_chunks(
            tenant_id,
            event_ids=event_ids,
            content_hashes=list({chunk.content_hash for chunk in chunks}),
            embedding_model=self._embedder.model,
            other_models=self._place.other_models,
        )

    async def _embedded(
        self, chunks: Sequence[CutChunk], known: KnownChunks
    ) -> list[tuple[CutChunk, Embedding]]:
        texts = {chunk.content_hash: chunk.text for chunk in chunks}
        embeddings = await embeddings_by_hash(texts, known.embeddings, self._embedder)
        fresh = len(texts.keys() - known.embeddings.keys())
        REUSED_CHUNKS.inc(len(chunks) - fresh)
        return [(chunk, embeddings[chunk.content_hash]) for chunk in chunks]

    def _cut(self, sources: Sequence[IndexableEvent]) -> list[CutChunk]:
        return [
            chunk
            for source in sources
            for chunk in cut(source, self._embedder, max_chunks=self._max_chunks)
        ]


def _may_be_half_done(entry: OutboxEntry) -> bool:
    """Whether an earlier attempt, or another worker at the same key, may have written points."""
    return entry.generation > 1 or entry.attempts > 1
