"""Chunks and points of events written straight into the tables, as the indexer would leave them.

A million takes minutes this way. The vectors are real ones of other texts, each moved a little, so
that no two are alike and "the nearest ten" are ten.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.rows import DictRow, dict_row
from tests.bench.stack import Stack
from tests.bench.texts import messages

from annals_storage.domain.embedding_bytes import to_bytes
from annals_storage.domain.events import EventType, Role
from annals_storage.domain.late_interaction import pack_signs
from annals_storage.domain.search import ChunkPoint
from annals_storage.embedding.bm25 import Bm25Encoder
from annals_storage.embedding.fastembed_model import FastembedEmbedder
from annals_storage.ports.vectors import VectorIndex
from annals_storage.vectors.edge import EdgeVectorIndex

POOL_TEXTS = 1_000
BATCH_POINTS = 1_000
NOISE = 0.02
"""Standard deviation of what a vector is moved by in each dimension: its cosine stays near .93."""
_POOL = """
CREATE TABLE IF NOT EXISTS public.pool (
  place integer PRIMARY KEY, embedding bytea NOT NULL, token_signs bytea NOT NULL
)
"""
_CHUNKS = """
INSERT INTO annals.chunks
  (tenant_id, chunk_id, event_id, conversation_id, chunk_index, start_char, end_char, token_count,
   content_hash, embedding, embedding_model, token_signs)
SELECT e.tenant_id, gen_random_uuid(), e.event_id, e.conversation_id, 0, 0, length(e.content),
       e.token_count, decode(md5(e.content), 'hex'), p.embedding, %(model)s, p.token_signs
FROM annals.events AS e
JOIN public.pool AS p ON p.place = e.seq %% %(places)s
WHERE e.conversation_id = ANY(%(conversation_ids)s::uuid[])
"""
_ROWS = """
SELECT k.chunk_id, k.tenant_id, k.conversation_id, k.event_id, e.seq, e.role, e.content,
       e.event_time
FROM annals.chunks AS k
JOIN annals.events AS e ON e.tenant_id = k.tenant_id AND e.event_id = k.event_id
WHERE k.conversation_id = ANY(%(conversation_ids)s::uuid[])
"""


@dataclass(frozen=True, slots=True)
class Pool:
    """Vectors of real texts, shape (texts, dimensions), and the signs of their tokens."""

    model: str
    vectors: NDArray[np.float32]
    token_signs: Sequence[bytes]


async def pool_of(embedder: FastembedEmbedder) -> Pool:
    """Embed the texts all vectors are made from."""
    vectors, tokens = await embedder.embed_tokens(list(messages(POOL_TEXTS, seed=99)))
    return Pool(embedder.model, vectors, [pack_signs(own) for own in tokens])


def add_chunks(stack: Stack, pool: Pool, conversation_ids: Sequence[str]) -> None:
    """Add one chunk for every event of conversations that have none."""
    with psycopg.connect(stack.postgres.admin_url) as connection:
        connection.execute(_POOL)
        connection.execute("TRUNCATE public.pool")
        with connection.cursor().copy("COPY public.pool FROM STDIN") as copy:
            for place, signs in enumerate(pool.token_signs):
                copy.write_row((place, to_bytes(pool.vectors[place]), signs))
        params = {
            "model": pool.model,
            "places": POOL_TEXTS,
            "conversation_ids": [*conversation_ids],
        }
        connection.execute(_CHUNKS, params)
        connection.execute("DROP TABLE public.pool")


async def add_points(
    stack: Stack, vectors: VectorIndex, pool: Pool, conversation_ids: Sequence[str]
) -> AsyncIterator[list[ChunkPoint]]:
    """Write the points of these conversations' chunks into an open engine; yield them."""
    noise, sparse = np.random.default_rng(1), Bm25Encoder()
    for rows in _batches(stack, conversation_ids):
        dense = _moved(pool.vectors, [row["seq"] for row in rows], noise)
        points = [_point(row, vector, sparse) for row, vector in zip(rows, dense, strict=True)]
        await vectors.upsert(points)
        yield points


@asynccontextmanager
async def open_edge(stack: Stack, dimensions: int) -> AsyncIterator[VectorIndex]:
    """Open the engine's files. Storage must not be running: the engine serves one process."""
    index = EdgeVectorIndex(stack.data_dir / "vectors", dimensions=dimensions)
    await index.open()
    try:
        yield index
    finally:
        await index.close()


def _batches(stack: Stack, conversation_ids: Sequence[str]) -> Iterator[list[DictRow]]:
    with (
        psycopg.connect(stack.postgres.admin_url, row_factory=dict_row) as connection,
        connection.cursor("points") as cursor,
    ):
        cursor.execute(_ROWS, {"conversation_ids": [*conversation_ids]})
        while rows := cursor.fetchmany(BATCH_POINTS):
            yield rows


def _moved(
    pool: NDArray[np.float32], seqs: Sequence[int], noise: np.random.Generator
) -> NDArray[np.float32]:
    vectors = pool[np.array(seqs) % len(pool)]
    vectors = vectors + noise.normal(0, NOISE, vectors.shape).astype(np.float32)
    unit: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def _point(row: DictRow, dense: NDArray[np.float32], sparse: Bm25Encoder) -> ChunkPoint:
    return ChunkPoint(
        chunk_id=row["chunk_id"],
        tenant_id=row["tenant_id"],
        conversation_id=row["conversation_id"],
        event_id=row["event_id"],
        seq=row["seq"],
        chunk_index=0,
        event_type=EventType.MESSAGE,
        event_time=row["event_time"],
        dense=dense,
        bm25=sparse.encode_document(row["content"]),
        role=Role(row["role"]),
    )
