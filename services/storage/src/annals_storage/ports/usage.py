"""Where usage is added up."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from annals_storage.domain.usage import ConversationSize, UsageQuery, UsageSum


class UsageStore(Protocol):
    """Where usage is added up."""

    async def page(self, tenant_id: UUID, query: UsageQuery) -> list[UsageSum]:
        """Return one page, in the order of the dimensions asked for."""

    async def page_large(
        self, tenant_id: UUID, *, min_event_count: int, cursor: tuple[int, UUID] | None, limit: int
    ) -> list[ConversationSize]:
        """Return one page of the conversations of at least this size, largest first."""
