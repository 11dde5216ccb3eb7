"""Makes the mirror match the rows of one tenant. Level-triggered: reads, then writes."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

from annals_storage.domain.generations import ALONE, MirrorPlace
from annals_storage.domain.indexing import (
    ChunkRow,
    IndexableEvent,
    KnownChunks,
    OutboxEntry,
    OutboxKind,
)
from annals_storage.domain.lexical import kept_terms
from annals_storage.indexer.chunker import MAX_CHUNKS, CutChunk, chunk_point, chunk_row, cut
from annals_storage.indexer.embeddings import Embedding, embeddings_by_hash
from annals_storage.indexer.engine_half import EngineHalf, EngineOutage, EngineWork
from annals_storage.indexer.memories import MemoryMirror
from annals_storage.indexer.metrics import INDEXED_EVENTS, REUSED_CHUNKS, STAGE_SECONDS
from annals_storage.ports.embedding import Embedder, SparseEncoder
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.vectors import VectorWriter


class Mirror:
    """Brings events, conversations and memories into the engine, or takes them out.

    PostgreSQL comes first: it gets the chunks, with embeddings and words, of the whole batch before
    the engine is told anything. So searches in PostgreSQL find what is new while the engine is
    down, and nothing is embedded again when it is back.
    """

    def __init__(
        self,
        *,
        outbox: Outbox,
        vectors: VectorWriter,
        embedder: Embedder,
        sparse: SparseEncoder,
        max_chunks: int = MAX_CHUNKS,
        place: MirrorPlace = ALONE,
        outage: EngineOutage | None = None,
    ) -> None:
        """`max_chunks`: of an event; what its later words say is not searched. `outage`: of the
        engine, as those know it who write to it too.
        """
        self._outbox = outbox
        self._engine = EngineHalf(vectors, EngineOutage() if outage is None else outage)
        self._embedder, self._sparse = embedder, sparse
        self._max_chunks, self._place = max_chunks, place
        self._memories = MemoryMirror(outbox=outbox, embedder=embedder, sparse=sparse, place=place)

    async def engine_answers(self) -> bool:
        """Ask the engine whether it is there; from its failure until then, nobody else does."""
        return await self._engine.answers()

    async def refresh(self, entries: Sequence[OutboxEntry]) -> None:
        """Mirror these entries of one tenant as their rows are now; safe to repeat.

        Raises EngineUnavailableError when everything is done but the engine's half.
        """
        work = EngineWork(entries[0].tenant_id)
        for entry in entries:
            if entry.kind is OutboxKind.CONVERSATION:
                await self._refresh_conversation(entry, work)
        events = [entry for entry in entries if entry.kind is OutboxKind.EVENT]
        if events:
            await self._refresh_events(events, work)
        memories = [entry.key for entry in entries if entry.kind is OutboxKind.MEMORY]
        if memories:
            await self._memories.refresh(memories, work)
        await self._engine.do(work)
        INDEXED_EVENTS.inc(len(events))

    async def _refresh_conversation(self, entry: OutboxEntry, work: EngineWork) -> None:
        tenant_id, conversation_id = entry.tenant_id, entry.conversation_id
        if await self._outbox.is_conversation_deleted(tenant_id, conversation_id):
            work.gone_conversations.append(conversation_id)
        else:
            await self._outbox.enqueue_conversation_events(tenant_id, conversation_id)

    async def _refresh_events(self, entries: Sequence[OutboxEntry], work: EngineWork) -> None:
        found = await self._outbox.get_indexable(work.tenant_id, [entry.key for entry in entries])
        present = {key: item for key, item in found.items() if not item.deleted}
        work.gone_events += [entry.key for entry in entries if entry.key not in present]
        # Only of these might the engine hold points that PostgreSQL no longer knows of.
        work.unsure_events += [e.key for e in entries if e.key in present and _may_be_half_done(e)]
        await self._write(list(present.values()), work)

    async def _write(self, sources: Sequence[IndexableEvent], work: EngineWork) -> None:
        # A long text takes a second to cut: not on the event loop that serves.
        with STAGE_SECONDS.labels("cut").time():
            chunks = await asyncio.to_thread(self._cut, sources)
        tenant_id, place = work.tenant_id, self._place
        event_ids = [source.event.event_id for source in sources]
        known = await self._known(tenant_id, event_ids, chunks)
        embedded, model = await self._embedded(chunks, known), self._embedder.model
        rows: list[ChunkRow] = []
        for chunk, embedding in embedded:
            bm25 = self._sparse.encode_document(chunk.text)
            kept = kept_terms(tenant_id, bm25)
            row = chunk_row(chunk, embedding, kept, model, place.chunks_of)
            rows.append(row)
            work.points.append(chunk_point(tenant_id, chunk, row, embedding.dense, bm25))
        await self._outbox.save_chunks(tenant_id, event_ids, rows, other_models=place.other_models)
        work.former_chunks += sorted(known.chunk_ids - {row.chunk_id for row in rows})

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
