"""The points of Qdrant Edge as they are, for verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar
from uuid import UUID

from qdrant_edge import (
    CountRequest,
    EdgeShard,
    Filter,
    HasIdCondition,
    IsEmptyCondition,
    ScrollRequest,
    UpdateOperation,
)

from annals_storage.domain.mirror import Drift, StoredPoint
from annals_storage.domain.search import ChunkPoint, MemoryPoint
from annals_storage.vectors import payload
from annals_storage.vectors.edge_requests import any_of, of_tenant

T = TypeVar("T")


class OnShard(Protocol):
    """Runs work on the shard, on a thread."""

    async def __call__(self, work: Callable[[EdgeShard], T], /) -> T:
        """Return what the work returns. Raises DependencyUnavailableError."""


class EdgeAudit:
    """`VectorAudit` over a shard."""

    def __init__(self, *, read: OnShard, write: OnShard) -> None:
        self._read, self._write = read, write

    async def count(self) -> int:
        """Return the exact number of points of everybody."""
        return await self._read(lambda shard: shard.count(CountRequest(exact=True)))

    async def page(self, *, after: UUID | None, limit: int) -> list[StoredPoint]:
        """Page through the points of everybody, ordered by id."""
        return await self._page(None, after, limit)

    async def page_of(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[StoredPoint]:
        """Page through the points of a tenant, ordered by id."""
        return await self._page(of_tenant(tenant_id), after, limit)

    async def get(self, point_ids: Sequence[UUID]) -> list[StoredPoint]:
        """Return those of these points that there are, in any order, of any tenant."""
        if not point_ids:
            return []
        wanted: list[int | UUID | str] = [*point_ids]
        rows = await self._read(
            lambda shard: shard.retrieve(wanted, with_payload=True, with_vector=False)
        )
        return [payload.stored_point(row.id, row.payload) for row in rows]

    async def delete(self, tenant: str | None, point_ids: Sequence[UUID]) -> None:
        """Remove those of these points that carry this as their tenant; None: that carry none."""
        if not point_ids:
            return
        theirs = (
            IsEmptyCondition(payload.TENANT_ID)
            if tenant is None
            else any_of(payload.TENANT_ID, [tenant])
        )
        these = Filter(must=[HasIdCondition({*point_ids}), theirs])
        operation = UpdateOperation.delete_points_by_filter(these)
        await self._write(lambda shard: shard.update(operation))

    def drift(self, stored: StoredPoint, expected: ChunkPoint | MemoryPoint) -> Drift | None:
        """Return how a point differs from what would be written now: stale, wrong or not."""
        return payload.drift(stored, expected)

    async def _page(
        self, within: Filter | None, after: UUID | None, limit: int
    ) -> list[StoredPoint]:
        request = ScrollRequest(offset=after, limit=limit + 1, filter=within, with_payload=True)
        rows, _ = await self._read(lambda shard: shard.scroll(request))
        points = [payload.stored_point(row.id, row.payload) for row in rows]
        return [point for point in points if point.point_id != after][:limit]
