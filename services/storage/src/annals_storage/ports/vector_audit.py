"""What an operator's tools read of a vector engine: points as they are, of whatever tenant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from annals_storage.domain.mirror import Drift, StoredPoint
from annals_storage.domain.search import ChunkPoint, MemoryPoint


class VectorAudit(Protocol):
    """Points without vectors. Never for what a caller asks: nothing here keeps tenants apart.

    Raises `EngineUnavailableError` when the engine does not answer.
    """

    async def count(self) -> int:
        """Return the exact number of points of everybody."""

    async def page(self, *, after: UUID | None, limit: int) -> list[StoredPoint]:
        """Page through the points of everybody, ordered by id."""

    async def page_of(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[StoredPoint]:
        """Page through the points of a tenant, ordered by id."""

    async def get(self, point_ids: Sequence[UUID]) -> list[StoredPoint]:
        """Return those of these points that there are, in any order, of any tenant."""

    async def delete(self, tenant: str | None, point_ids: Sequence[UUID]) -> None:
        """Remove those of these points that carry this as their tenant; None: that carry none."""

    def drift(self, stored: StoredPoint, expected: ChunkPoint | MemoryPoint) -> Drift | None:
        """Return how a point differs from what would be written now: stale, wrong or not."""
