"""Events to chunks: what PostgreSQL keeps and what the engine is given."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from annals_common.ids import derived_uuid
from annals_storage.domain.chunking import ChunkSpan, chunk_spans
from annals_storage.domain.embedding_bytes import to_bytes
from annals_storage.domain.generations import FIRST
from annals_storage.domain.indexing import ChunkRow, IndexableEvent
from annals_storage.domain.lexical import KeptTerms
from annals_storage.domain.mirror import made_of
from annals_storage.domain.search import ChunkPoint, DenseVector, SparseVector
from annals_storage.indexer.embeddings import Embedding, content_hash
from annals_storage.indexer.metrics import TRUNCATED_EVENTS
from annals_storage.ports.embedding import Embedder

SPECIAL_TOKENS = 2
"""[CLS] and [SEP], which the model adds to every text."""
OVERLAP_TOKENS = 32
MAX_CHUNKS = 512
"""Of an event, unless the settings say otherwise."""


@dataclass(frozen=True, slots=True)
class CutChunk:
    """A chunk on its way into the mirror, not embedded yet."""

    source: IndexableEvent
    index: int
    span: ChunkSpan
    text: str
    content_hash: bytes


def spans_of(
    text: str, embedder: Embedder, *, words_start: int = 0, max_chunks: int | None = None
) -> list[ChunkSpan]:
    """Return the pieces of a text that fit the model's window, the first `max_chunks` of them.

    `words_start`: where what has a structure of its own begins.
    """
    return chunk_spans(
        text,
        embedder.token_spans(text),
        max_tokens=embedder.max_tokens - SPECIAL_TOKENS,
        overlap_tokens=OVERLAP_TOKENS,
        max_chunks=max_chunks,
        words_start=words_start,
    )


def cut(
    source: IndexableEvent, embedder: Embedder, *, max_chunks: int = MAX_CHUNKS
) -> list[CutChunk]:
    """Return the first `max_chunks` chunks of an event, none when it has no words."""
    body = source.event.body
    text = body.text()
    if not body.words().strip():
        return []
    spans = spans_of(text, embedder, words_start=len(body.label()), max_chunks=max_chunks)
    if spans and spans[-1].end < len(text.rstrip()):
        TRUNCATED_EVENTS.inc()
    return [
        CutChunk(source, index, span, piece, content_hash(piece))
        for index, span in enumerate(spans)
        if (piece := text[span.start : span.end])
    ]


def chunk_id(event_id: UUID, index: int, chunks_of: int = FIRST) -> UUID:
    """Return the id a chunk always has, so that writing it twice is writing it once.

    `chunks_of`: the generation of the mirror that has chunks of its own, by a model of its own.
    """
    own = () if chunks_of == FIRST else (str(chunks_of),)
    return derived_uuid("chunk", event_id.bytes, str(index), *own)


def chunk_row(
    chunk: CutChunk, embedding: Embedding, kept: KeptTerms, model: str, chunks_of: int = FIRST
) -> ChunkRow:
    """Return the chunk as PostgreSQL keeps it."""
    event = chunk.source.event
    return ChunkRow(
        chunk_id=chunk_id(event.event_id, chunk.index, chunks_of),
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
    tenant_id: UUID, chunk: CutChunk, row: ChunkRow, dense: DenseVector, bm25: SparseVector
) -> ChunkPoint:
    """Return the chunk as the engine holds it."""
    source, event = chunk.source, chunk.source.event
    return ChunkPoint(
        chunk_id=row.chunk_id,
        tenant_id=tenant_id,
        conversation_id=event.conversation_id,
        event_id=event.event_id,
        seq=event.seq,
        chunk_index=chunk.index,
        event_type=event.body.type,
        event_time=event.event_time,
        dense=dense,
        bm25=bm25,
        agent_id=source.agent_id,
        user_id=source.user_id,
        session_id=source.session_id,
        role=event.body.role,
        tool_name=event.body.tool_name,
        branch=event.branch,
        current=source.current,
        made_of=made_of(row.content_hash, row.embedding_model),
    )
