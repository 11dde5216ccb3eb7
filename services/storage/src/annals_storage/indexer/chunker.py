"""Events to chunks: what PostgreSQL keeps and what the engine is given."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from annals_common.ids import derived_uuid
from annals_storage.domain.chunking import ChunkSpan, chunk_spans
from annals_storage.domain.indexing import ChunkRow, IndexableEvent
from annals_storage.domain.lexical import kept_terms
from annals_storage.domain.mirror import made_of
from annals_storage.domain.search import ChunkPoint, SparseVector
from annals_storage.indexer.embeddings import Embedding, content_hash, to_bytes
from annals_storage.ports.embedding import Embedder

SPECIAL_TOKENS = 2
"""[CLS] and [SEP], which the model adds to every text."""
OVERLAP_TOKENS = 32


@dataclass(frozen=True, slots=True)
class CutChunk:
    """A chunk on its way into the mirror, not embedded yet."""

    source: IndexableEvent
    index: int
    span: ChunkSpan
    text: str
    content_hash: bytes


def spans_of(text: str, embedder: Embedder) -> list[ChunkSpan]:
    """Return the pieces of a text that fit the model's window."""
    return chunk_spans(
        text,
        embedder.token_spans(text),
        max_tokens=embedder.max_tokens - SPECIAL_TOKENS,
        overlap_tokens=OVERLAP_TOKENS,
    )


def cut(source: IndexableEvent, embedder: Embedder) -> list[CutChunk]:
    """Return the chunks of an event, none when it has no words."""
    text = source.event.body.text()
    if not source.event.body.words().strip():
        return []
    return [
        CutChunk(source, index, span, piece, content_hash(piece))
        for index, span in enumerate(spans_of(text, embedder))
        if (piece := text[span.start : span.end])
    ]


def chunk_id(event_id: UUID, index: int) -> UUID:
    """Return the id a chunk always has, so that writing it twice is writing it once."""
    return derived_uuid("chunk", event_id.bytes, str(index))


def chunk_row(
    tenant_id: UUID, chunk: CutChunk, embedding: Embedding, bm25: SparseVector, model: str
) -> ChunkRow:
    """Return the chunk as PostgreSQL keeps it."""
    event, kept = chunk.source.event, kept_terms(tenant_id, bm25)
    return ChunkRow(
        chunk_id=chunk_id(event.event_id, chunk.index),
        event_id=event.event_id,
        conversation_id=event.conversation_id,
        chunk_index=chunk.index,
        start_char=chunk.span.start,
        end_char=chunk.span.end,
        token_count=chunk.span.token_count,
        content_hash=chunk.content_hash,
        embedding=to_bytes(embedding.dense),
        embedding_model=model,
        token_signs=embedding.token_signs,
        terms=kept.keys,
        term_weights=kept.weights,
    )


def chunk_point(
    tenant_id: UUID, chunk: CutChunk, embedding: Embedding, bm25: SparseVector, model: str
) -> ChunkPoint:
    """Return the chunk as the engine holds it. `model` made the embedding."""
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
        dense=embedding.dense,
        bm25=bm25,
        agent_id=source.agent_id,
        user_id=source.user_id,
        session_id=source.session_id,
        role=event.body.role,
        tool_name=event.body.tool_name,
        branch=event.branch,
        current=source.current,
        made_of=made_of(chunk.content_hash, model),
    )
