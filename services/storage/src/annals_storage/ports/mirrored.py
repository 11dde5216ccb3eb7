"""What belongs into the mirror."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol
from uuid import UUID

from annals_storage.domain.mirror import MirroredRow


class MirroredRows(Protocol):
    """Chunks and memories of a tenant, with the points they should have."""

    async def page(self, tenant_id: UUID, *, after: UUID | None, limit: int) -> list[UUID]:
        """Page through the ids of the points there should be, in order."""

    async def get(self, tenant_id: UUID, point_ids: Sequence[UUID]) -> dict[UUID, MirroredRow]:
        """Return the rows of these points as they are now, by id; others are missing."""

    async def waiting(self, tenant_id: UUID, keys: Collection[UUID]) -> set[UUID]:
        """Return those of these events, memories and conversations that the outbox holds."""

    async def enqueue(self, tenant_id: UUID, source_ids: Collection[UUID]) -> int:
        """Have those of these ids that are events or memories mirrored again; return how many."""
