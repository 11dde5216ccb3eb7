"""Where raw requests and responses are kept."""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from annals_storage.domain.provider_logs import NewProviderLog, ProviderLog, ProviderLogPage
from annals_storage.ports.paging import PageCursor


class ProviderLogStore(Protocol):
    """Where raw requests and responses are kept for a while."""

    async def create(self, tenant_id: UUID, new: NewProviderLog) -> ProviderLog:
        """Raises ResourceNotFoundError, ProviderLogsDisabledError."""

    async def page(
        self, tenant_id: UUID, conversation_id: UUID, *, cursor: PageCursor, limit: int
    ) -> ProviderLogPage:
        """Return one page, newest first. Raises ResourceNotFoundError."""
