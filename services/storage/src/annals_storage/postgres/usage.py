"""Sums of usage, and sizes of conversations."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals_storage.domain.usage import ConversationSize, UsageDimension, UsageQuery, UsageSum
from annals_storage.postgres.database import Database, sql

_PLACES = {dimension: place for place, dimension in enumerate(UsageDimension, start=1)}
"""Where list_usage.sql has each dimension."""
_SUMS = ("event_count", "input_tokens", "output_tokens", "cached_input_tokens")


class PostgresUsage:
    """Usage of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, tenant_id: UUID, query: UsageQuery) -> list[UsageSum]:
        """Return one page, in the order of the dimensions asked for."""
        params: dict[str, Any] = {
            "tenant_id": tenant_id,
            "dimensions": [_PLACES[dimension] for dimension in query.group_by],
            "start_day": query.start_day,
            "end_day": query.end_day,
            "agent_id": query.agent_id,
            "user_id": query.user_id,
            "conversation_id": query.conversation_id,
            "cursor": list(query.cursor) if query.cursor is not None else None,
            "limit": query.limit,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_usage"), params))
        names = [dimension.value for dimension in query.group_by]
        return [
            UsageSum(
                **dict(zip(names, row["key"], strict=True)), **{name: row[name] for name in _SUMS}
            )
            for row in rows
        ]

    async def page_large(
        self,
        tenant_id: UUID,
        *,
        min_event_count: int,
        cursor: tuple[int, UUID] | None,
        limit: int,
    ) -> list[ConversationSize]:
        """Return one page of the conversations of at least this size, largest first."""
        cursor_count, cursor_id = cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            "min_event_count": min_event_count,
            "cursor_count": cursor_count,
            "cursor_id": cursor_id,
            "limit": limit,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_large_conversations"), params))
        return [ConversationSize(**row) for row in rows]
