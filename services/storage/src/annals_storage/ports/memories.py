"""Where memories are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from annals_storage.domain.memories import (
    FoundMemory,
    Memory,
    MemoryChange,
    MemoryQuery,
    NewMemory,
    StoreOutcome,
)


class MemoryStore(Protocol):
    """Where memories are kept. Those of deleted conversations are not visible."""

    async def store(self, tenant_id: UUID, new: NewMemory) -> StoreOutcome:
        """Insert, or find what an earlier call stored."""

    async def get(self, tenant_id: UUID, memory_ids: Sequence[UUID]) -> dict[UUID, FoundMemory]:
        """Return the visible ones by id."""

    async def page(self, tenant_id: UUID, query: MemoryQuery) -> list[Memory]:
        """Return one page, newest first. Raises ResourceNotFoundError without the conversation."""

    async def update(
        self, tenant_id: UUID, change: MemoryChange
    ) -> tuple[Memory | None, Memory | None]:
        """Apply the change; return (changed, current). `changed` is None when nothing matched."""

    async def delete(self, tenant_id: UUID, memory_id: UUID) -> bool:
        """Delete it for good; return whether there was one."""
