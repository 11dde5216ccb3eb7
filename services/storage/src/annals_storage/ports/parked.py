"""What the indexer gave up."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Protocol
from uuid import UUID

from annals_storage.domain.indexing import ParkedEntry


class ParkedEntries(Protocol):
    """Entries of the outbox that failed too often."""

    async def page(
        self, tenant_id: UUID, *, cursor: tuple[datetime, UUID] | None, limit: int
    ) -> list[ParkedEntry]:
        """Return at most `limit` entries, newest first, after (parked_at, key)."""

    async def retry(self, tenant_id: UUID, keys: Collection[UUID] = ()) -> int:
        """Have these tried again, or all of the tenant; return how many were parked."""
