"""Writes and reads the log of searches."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from psycopg.rows import DictRow

from annals_common.principal import Actor
from annals_storage.domain.erasure import user_subject
from annals_storage.domain.search_log import LoggedSearch, SearchLogKind, SearchLogQuery
from annals_storage.postgres.database import Database, sql

_OWN = tuple(name for name in LoggedSearch.__slots__ if name != "actor")


class PostgresSearchLog:
    """Searches of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def write(self, tenant_id: UUID, searches: Sequence[LoggedSearch]) -> None:
        """Keep searches of one tenant, save those whose subjects were erased meanwhile."""
        params = {
            "tenant_id": tenant_id,
            **{name: [getattr(search, name) for search in searches] for name in _OWN},
            **{
                name: [getattr(search.actor, name) for search in searches]
                for name in Actor.__slots__
            },
            "user_subject": [_subject(tenant_id, search.actor.user_id) for search in searches],
        }
        lock = {"tenant_id": tenant_id, "shared": True}
        await self._database.run(
            tenant_id, (sql("search_log_lock"), lock), (sql("write_search_log"), params)
        )

    async def page(self, tenant_id: UUID, query: SearchLogQuery) -> list[LoggedSearch]:
        """Return one page, newest first."""
        cursor_time, cursor_id = query.cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            **{name: getattr(query, name) for name in query.__slots__ if name != "cursor"},
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_search_log"), params))
        return [_search_from(row) for row in rows]


def _subject(tenant_id: UUID, user_id: str | None) -> str | None:
    return None if user_id is None else user_subject(tenant_id, user_id)


def _search_from(row: DictRow) -> LoggedSearch:
    values = {name: row[name] for name in _OWN}
    actor = Actor(**{name: row[name] for name in Actor.__slots__})
    return LoggedSearch(**{**values, "kind": SearchLogKind(row["kind"]), "actor": actor})
