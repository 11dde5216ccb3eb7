"""The vector engine inside this process: one shard of Qdrant Edge."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from qdrant_edge import (
    CountRequest,
    EdgeShard,
    FieldCondition,
    Filter,
    HasIdCondition,
    QueryBatchRequest,
    QueryRequest,
    ScrollRequest,
    UpdateOperation,
)

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
from annals_storage.vectors import payload
from annals_storage.vectors.edge_audit import EdgeAudit
from annals_storage.vectors.edge_requests import (
    any_of,
    engine_point,
    event_requests,
    in_scope,
    memory_request,
    of_tenant,
)
from annals_storage.vectors.edge_shard import open_shard

FLUSH_EVERY_POINTS = 10_000
"""Bounds the write-ahead log: a flush lets the engine drop what the segments hold."""

T = TypeVar("T")


class EdgeVectorIndex:
    """`VectorIndex` over a shard at `path`, which only this process may open.

    Every call runs on a thread: the engine releases the interpreter while it works. Writes
    have one thread to themselves, so that a burst of indexing leaves the `threads` of the
    queries alone. Once closed, an instance stays closed.
    """

    def __init__(self, path: Path, *, dimensions: int, threads: int = 2) -> None:
        self._path = path
        self._dimensions = dimensions
        self._shard: EdgeShard | None = None
        self._unflushed_points = 0
        self._readers = ThreadPoolExecutor(threads, thread_name_prefix="edge-read")
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="edge-write")
        self._audit = EdgeAudit(read=self._read, write=self._write)

    @property
    def audit(self) -> EdgeAudit:
        """Its points as they are, for verification."""
        return self._audit

    async def open(self) -> None:
        """Create or open the shard; safe to repeat.

        Raises ShardLockedError or ShardUnusableError.
        """
        await asyncio.get_running_loop().run_in_executor(self._writer, self._open)

    async def close(self) -> None:
        """Flush and let go of the shard; safe to repeat."""
        if self._shard is not None:
            await self._write(self._close)
        self._readers.shutdown(wait=False)
        self._writer.shutdown(wait=False)

    async def ping(self) -> None:
        """Answer, or raise."""
        await self._read(EdgeShard.info)

    async def upsert(self, points: Sequence[ChunkPoint | MemoryPoint]) -> None:
        """Insert or replace points. The write-ahead log holds them on return."""
        for point in points:
            payload.check_dimensions(point.dense, self._dimensions)
        if points:
            await self._write(lambda shard: self._upsert(shard, points))

    async def delete_events(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        """Remove every chunk of these events."""
        if event_ids:
            await self._delete(tenant_id, any_of(payload.EVENT_ID, payload.texts(event_ids)))

    async def delete_chunks(self, tenant_id: UUID, chunk_ids: Sequence[UUID]) -> None:
        """Remove these chunks."""
        if chunk_ids:
            await self._delete(tenant_id, HasIdCondition({*chunk_ids}))

    async def delete_memories(self, tenant_id: UUID, memory_ids: Sequence[UUID]) -> None:
        """Remove these memories."""
        if memory_ids:
            await self._delete(tenant_id, HasIdCondition({*memory_ids}))

    async def delete_conversation(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Remove every chunk and memory of this conversation."""
        only_it = any_of(payload.CONVERSATION_ID, [str(conversation_id)])
        await self._delete(tenant_id, only_it)

    async def query(self, query: VectorQuery) -> Mapping[Signal, list[ScoredChunk]]:
        """Return the best chunks per signal, compared with every chunk of the scope."""
        if query.dense is not None:
            payload.check_dimensions(query.dense, self._dimensions)
        requests = event_requests(query)
        # Side by side: a request keeps one core busy.
        found = await asyncio.gather(*(self._nearest(one) for one in requests.values()))
        by_signal = dict(zip(requests, found, strict=True))
        return {signal: by_signal.get(signal, []) for signal in payload.asked(query)}

    async def _nearest(self, request: QueryRequest) -> list[ScoredChunk]:
        return await self._read(lambda shard: _nearest_chunks(shard, request))

    async def query_memories(
        self, scope: MemoryScope, dense: DenseVector, limit: int
    ) -> list[ScoredMemory]:
        """Return the nearest memories of the scope, compared with every one of them."""
        payload.check_dimensions(dense, self._dimensions)
        return await self._read(lambda shard: _nearest_memories(shard, scope, dense, limit))

    async def count(self, scope: SearchScope | MemoryScope) -> int:
        """Return the exact number of points in the scope."""
        return await self._count(in_scope(scope))

    async def count_points(self, tenant_id: UUID) -> int:
        """Return the exact number of points of a tenant, of every kind and branch."""
        return await self._count(of_tenant(tenant_id))

    async def _count(self, within: Filter) -> int:
        request = CountRequest(exact=True, filter=within)
        return await self._read(lambda shard: shard.count(request))

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through (chunk_id, event_id) and twice each memory_id, ordered by the first."""
        request = ScrollRequest(
            offset=after,
            limit=limit + 1,
            filter=of_tenant(tenant_id),
            with_payload=[payload.EVENT_ID],
        )
        pairs = await self._read(lambda shard: _pairs(shard, request))
        return payload.page_after(pairs, after=after, limit=limit)

    def _open(self) -> None:
        if self._shard is None:
            self._shard = open_shard(self._path, dimensions=self._dimensions)

    def _close(self, shard: EdgeShard) -> None:
        self._shard = None
        shard.flush()
        shard.close()

    def _upsert(self, shard: EdgeShard, points: Sequence[ChunkPoint | MemoryPoint]) -> None:
        shard.update(UpdateOperation.upsert_points([engine_point(point) for point in points]))
        self._unflushed_points += len(points)
        if self._unflushed_points >= FLUSH_EVERY_POINTS:
            shard.flush()
            self._unflushed_points = 0

    async def _delete(self, tenant_id: UUID, condition: FieldCondition | HasIdCondition) -> None:
        these = Filter(must=[of_tenant(tenant_id), condition])
        operation = UpdateOperation.delete_points_by_filter(these)
        await self._write(lambda shard: shard.update(operation))

    async def _read(self, work: Callable[[EdgeShard], T]) -> T:
        return await self._run(self._readers, work)

    async def _write(self, work: Callable[[EdgeShard], T]) -> T:
        return await self._run(self._writer, work)

    async def _run(self, threads: ThreadPoolExecutor, work: Callable[[EdgeShard], T]) -> T:
        if self._shard is None:
            raise payload.unavailable()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, _attempt, work, self._shard)


def _attempt(work: Callable[[EdgeShard], T], shard: EdgeShard) -> T:
    """Run `work`. The engine raises plain Exception; mistakes of ours pass as they are."""
    try:
        return work(shard)
    except (TypeError, ValueError):
        raise
    except Exception as error:
        raise payload.unavailable() from error


def _nearest_chunks(shard: EdgeShard, request: QueryRequest) -> list[ScoredChunk]:
    [found] = shard.query_batch(QueryBatchRequest([request]))
    return [payload.decode(point.id, point.payload or {}, point.score) for point in found]


def _nearest_memories(
    shard: EdgeShard, scope: MemoryScope, dense: DenseVector, limit: int
) -> list[ScoredMemory]:
    request = memory_request(scope, dense, limit)
    [found] = shard.query_batch(QueryBatchRequest([request]))
    return [ScoredMemory(payload.point_id_of(point.id), point.score) for point in found]


def _pairs(shard: EdgeShard, request: ScrollRequest) -> list[tuple[UUID, UUID]]:
    records, _ = shard.scroll(request)
    return [payload.point_and_source(row.id, row.payload) for row in records]
