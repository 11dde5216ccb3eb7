"""The points of a Qdrant server as they are, for verification."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from uuid import UUID

from qdrant_client import AsyncQdrantClient, models

from annals_storage.domain.mirror import Drift, StoredPoint
from annals_storage.domain.search import ChunkPoint, MemoryPoint
from annals_storage.vectors import payload
from annals_storage.vectors.server_errors import translated
from annals_storage.vectors.server_requests import any_of, of_tenant


class ServerAudit:
    """`VectorAudit` over a collection, named by a call."""

    def __init__(self, client: AsyncQdrantClient, collection: Callable[[], str]) -> None:
        self._client, self._collection = client, collection

    async def count(self) -> int:
        """Return the exact number of points of everybody."""
        with translated():
            return (await self._client.count(self._collection(), exact=True)).count

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
        with translated():
            rows = await self._client.retrieve(self._collection(), payload.texts(point_ids))
        return [payload.stored_point(row.id, row.payload) for row in rows]

    async def delete(self, tenant: str | None, point_ids: Sequence[UUID]) -> None:
        """Remove those of these points that carry this as their tenant; None: that carry none."""
        if not point_ids:
            return
        named: models.Condition = models.HasIdCondition(has_id=[*payload.texts(point_ids)])
        theirs: models.Condition = (
            models.IsEmptyCondition(is_empty=models.PayloadField(key=payload.TENANT_ID))
            if tenant is None
            else any_of(payload.TENANT_ID, [tenant])
        )
        selector = models.FilterSelector(filter=models.Filter(must=[named, theirs]))
        with translated():
            await self._client.delete(self._collection(), selector, wait=True)

    def drift(self, stored: StoredPoint, expected: ChunkPoint | MemoryPoint) -> Drift | None:
        """Return how a point differs from what would be written now: stale, wrong or not."""
        return payload.drift(stored, expected)

    async def _page(
        self, within: models.Filter | None, after: UUID | None, limit: int
    ) -> list[StoredPoint]:
        with translated():
            rows, _ = await self._client.scroll(
                self._collection(),
                scroll_filter=within,
                limit=limit + 1,
                offset=None if after is None else str(after),
                with_payload=True,
            )
        points = [payload.stored_point(row.id, row.payload) for row in rows]
        return [point for point in points if point.point_id != after][:limit]
