"""Where assembled contexts are kept."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from annals_storage.domain.context_cache import FoundContext, NewContext, WantedContext


class ContextCacheStore(Protocol):
    """Where assembled contexts are kept for a while."""

    async def get(self, tenant_id: UUID, wanted: WantedContext) -> FoundContext:
        """Raises ResourceNotFoundError."""

    async def put(self, tenant_id: UUID, new: NewContext) -> tuple[bool, bool]:
        """Return whether the state is still the same, and whether the context is kept.

        Raises ResourceNotFoundError.
        """
