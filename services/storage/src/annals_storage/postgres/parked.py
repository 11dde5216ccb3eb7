"""What the indexer gave up."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from annals_storage.domain.indexing import OutboxKind, ParkedEntry
from annals_storage.postgres.database import Database, sql


class PostgresParked:
    """`ParkedEntries` over PostgreSQL."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, tenant_id: UUID, *, cursor: tuple[datetime, UUID] | None, limit: int
    ) -> list[ParkedEntry]:
        """Return at most `limit` entries, newest first, after (parked_at, key)."""
        cursor_time, cursor_id = cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
            "limit": limit,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_parked"), params))
        return [ParkedEntry(**{**row, "kind": OutboxKind(row["kind"])}) for row in rows]

    async def retry(self, tenant_id: UUID, keys: Collection[UUID] = ()) -> int:
        """Have these tried again, or all of the tenant; return how many were parked."""
        params = {"tenant_id": tenant_id, "keys": list(keys) or None}
        [rows] = await self._database.run(tenant_id, (sql("retry_parked"), params))
        return len(rows)
