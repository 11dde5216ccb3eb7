"""Makes the mirror match the memories of one tenant."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID

import numpy as np

from annals_storage.domain.embedding_bytes import from_bytes, to_bytes
from annals_storage.domain.generations import ALONE, MirrorPlace
from annals_storage.domain.indexing import IndexableMemory, MemoryEmbedding, MemoryTerms
from annals_storage.domain.lexical import kept_terms
from annals_storage.domain.mirror import made_of
from annals_storage.domain.search import DenseVector, MemoryPoint
from annals_storage.indexer.chunker import spans_of
from annals_storage.indexer.embeddings import content_hash, embeddings_by_hash
from annals_storage.indexer.engine_half import EngineWork
from annals_storage.ports.embedding import Embedder, SparseEncoder
from annals_storage.ports.outbox import Outbox


class MemoryMirror:
    """Brings memories into the engine, or takes them out. A memory is one point."""

    def __init__(
        self,
        *,
        outbox: Outbox,
        embedder: Embedder,
        sparse: SparseEncoder,
        place: MirrorPlace = ALONE,
    ) -> None:
        self._outbox, self._embedder, self._sparse = outbox, embedder, sparse
        self._place = place

    async def refresh(self, memory_ids: Sequence[UUID], work: EngineWork) -> None:
        """Keep what these memories lack as their rows are now, and add what the engine lacks."""
        tenant_id, model = work.tenant_id, self._embedder.model
        found = await self._outbox.get_indexable_memories(tenant_id, memory_ids, model)
        present = {key: item for key, item in found.items() if not item.deleted}
        work.gone_memories += [memory_id for memory_id in memory_ids if memory_id not in present]
        fresh = await self._embed([m for m in present.values() if m.embedding is None])
        await self._save(tenant_id, present, fresh)
        work.points += [_point(tenant_id, item, fresh, model) for item in present.values()]

    async def _save(
        self,
        tenant_id: UUID,
        memories: dict[UUID, IndexableMemory],
        fresh: dict[UUID, DenseVector],
    ) -> None:
        terms = [self._terms(tenant_id, memory) for memory in memories.values()]
        await self._outbox.save_memory_terms(tenant_id, terms)
        if not fresh:
            return
        embeddings = [
            MemoryEmbedding(memory_id, memories[memory_id].version, to_bytes(vector))
            for memory_id, vector in fresh.items()
        ]
        await self._outbox.save_memory_embeddings(
            tenant_id, embeddings, self._embedder.model, is_serving=self._place.is_serving
        )

    def _terms(self, tenant_id: UUID, memory: IndexableMemory) -> MemoryTerms:
        kept = kept_terms(tenant_id, self._sparse.encode_document(memory.content))
        return MemoryTerms(memory.memory_id, memory.version, kept.keys, kept.weights)

    async def _embed(self, memories: Sequence[IndexableMemory]) -> dict[UUID, DenseVector]:
        pieces = await asyncio.to_thread(
            lambda: {m.memory_id: _pieces(m.content, self._embedder) for m in memories}
        )
        texts = {content_hash(text): text for own in pieces.values() for text, _ in own}
        embeddings = await embeddings_by_hash(texts, {}, self._embedder)
        return {
            memory_id: _centre(
                [(embeddings[content_hash(text)].dense, tokens) for text, tokens in own]
            )
            for memory_id, own in pieces.items()
        }


def _pieces(content: str, embedder: Embedder) -> list[tuple[str, int]]:
    """Return (text, tokens) of what fits the model's window; at least one."""
    spans = spans_of(content, embedder)
    return [(content[s.start : s.end], s.token_count) for s in spans] or [(content, 1)]


def _centre(parts: Sequence[tuple[DenseVector, int]]) -> DenseVector:
    """Return the mean by tokens, of length 1: a memory has one vector, however long it is."""
    if len(parts) == 1:
        return parts[0][0]
    weights = np.array([tokens for _, tokens in parts], np.float32)
    total: DenseVector = weights @ np.stack([vector for vector, _ in parts])
    return total / np.float32(np.linalg.norm(total) or 1.0)


def _point(
    tenant_id: UUID, memory: IndexableMemory, fresh: dict[UUID, DenseVector], model: str
) -> MemoryPoint:
    # As it is kept: mirroring it once more makes the same point.
    stored = memory.embedding or to_bytes(fresh[memory.memory_id])
    return MemoryPoint(
        memory_id=memory.memory_id,
        tenant_id=tenant_id,
        conversation_id=memory.conversation_id,
        dense=from_bytes(stored),
        tags=memory.tags,
        agent_id=memory.agent_id,
        user_id=memory.user_id,
        session_id=memory.session_id,
        made_of=made_of(stored, model),
    )
