"""Events to chunks: what PostgreSQL keeps and what the engine is given."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from annals_common.ids import derived_uuid
from annals_storage.domain.chunking import ChunkSpan, chunk_spans
from annals_storage.domain.indexing import ChunkRow, IndexableEvent
from annals_storage.domain.search import ChunkPoint, DenseVector
from annals_storage.ports import Embedder, SparseEncoder

SPECIAL_TOKENS = 2
"""[CLS] and [SEP], which the model adds to every text."""
OVERLAP_TOKENS = 32


@dataclass(frozen=True, slots=True)
class CutChunk:
    """A chunk whose text is not embedded yet."""

    source: IndexableEvent
    index: int
    span: ChunkSpan
    text: str


def cut(source: IndexableEvent, embedder: Embedder) -> list[CutChunk]:
    """Return the chunks of an event, none when it has no words."""
    text = source.event.body.text()
    if not source.event.body.words().strip():
        return []
    spans = chunk_spans(
        text,
        embedder.token_spans(text),
        max_tokens=embedder.max_tokens - SPECIAL_TOKENS,
        overlap_tokens=OVERLAP_TOKENS,
    )
    return [CutChunk(source, i, s, text[s.start : s.end]) for i, s in enumerate(spans)]


async def embed(
    tenant_id: UUID, chunks: Sequence[CutChunk], embedder: Embedder, sparse: SparseEncoder
) -> tuple[list[ChunkRow], list[ChunkPoint]]:
    """Return the rows and points of these chunks, in order."""
    if not chunks:
        return [], []
    vectors = await embedder.embed([chunk.text for chunk in chunks])
    rows = [_row(c, v, embedder.model) for c, v in zip(chunks, vectors, strict=True)]
    points = [_point(tenant_id, c, v, sparse) for c, v in zip(chunks, vectors, strict=True)]
    return rows, points


def chunk_id(event_id: UUID, index: int) -> UUID:
    """Return the id a chunk always has, so that writing it twice is writing it once."""
    return derived_uuid("chunk", event_id.bytes, str(index))


def _row(chunk: CutChunk, vector: DenseVector, model: str) -> ChunkRow:
    event = chunk.source.event
    return ChunkRow(
        chunk_id=chunk_id(event.event_id, chunk.index),
        event_id=event.event_id,
        conversation_id=event.conversation_id,
        chunk_index=chunk.index,
        start_char=chunk.span.start,
        end_char=chunk.span.end,
        token_count=chunk.span.token_count,
        content_hash=hashlib.sha256(chunk.text.encode()).digest()[:16],
        embedding=vector.astype(np.dtype("<f2")).tobytes(),
        embedding_model=model,
    )


def _point(
    tenant_id: UUID, chunk: CutChunk, vector: DenseVector, sparse: SparseEncoder
) -> ChunkPoint:
    source, event = chunk.source, chunk.source.event
    return ChunkPoint(
        chunk_id=chunk_id(event.event_id, chunk.index),
        tenant_id=tenant_id,
        conversation_id=event.conversation_id,
        event_id=event.event_id,
        seq=event.seq,
        chunk_index=chunk.index,
        event_type=event.body.type,
        event_time=event.event_time,
        dense=vector,
        bm25=sparse.encode_document(chunk.text),
        agent_id=source.agent_id,
        user_id=source.user_id,
        session_id=source.session_id,
        role=event.body.role,
        tool_name=event.body.tool_name,
    )
