"""Raw requests to model providers and their responses."""

from __future__ import annotations

from uuid import UUID

from psycopg.rows import DictRow

from annals_common.errors import ProviderLogsDisabledError, ResourceNotFoundError
from annals_storage.domain.provider_logs import (
    DEFAULT_LOG_DAYS,
    NewProviderLog,
    ProviderLog,
    ProviderLogPage,
)
from annals_storage.ports.paging import PageCursor
from annals_storage.postgres.database import Database, sql
from annals_storage.postgres.events import MAX_PAGE_BYTES


class PostgresProviderLogs:
    """Provider logs of a tenant. Deleted conversations are not visible."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, tenant_id: UUID, new: NewProviderLog) -> ProviderLog:
        """Raises ResourceNotFoundError, ProviderLogsDisabledError."""
        params = {
            "tenant_id": tenant_id,
            **{name: getattr(new, name) for name in new.__slots__},
            "default_days": DEFAULT_LOG_DAYS,
        }
        inserted, owner = await self._database.run(
            tenant_id, (sql("insert_provider_log"), params), (sql("provider_log_owner"), params)
        )
        if inserted:
            return _log_from(inserted[0])
        if not owner:
            raise ResourceNotFoundError("conversation", str(new.conversation_id))
        raise ProviderLogsDisabledError(str(owner[0]["agent_id"] or ""))

    async def page(
        self, tenant_id: UUID, conversation_id: UUID, *, cursor: PageCursor, limit: int
    ) -> ProviderLogPage:
        """Return one page, newest first. Raises ResourceNotFoundError."""
        cursor_time, cursor_id = cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            "conversation_id": conversation_id,
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
            "limit": limit,
            "max_bytes": MAX_PAGE_BYTES,
        }
        owner, rows = await self._database.run(
            tenant_id, (sql("provider_log_owner"), params), (sql("list_provider_logs"), params)
        )
        if not owner:
            raise ResourceNotFoundError("conversation", str(conversation_id))
        has_more = bool(rows and rows[0]["has_more"])
        return ProviderLogPage(tuple(_log_from(row) for row in rows), has_more)


def _log_from(row: DictRow) -> ProviderLog:
    return ProviderLog(**{name: row[name] for name in ProviderLog.__slots__})
