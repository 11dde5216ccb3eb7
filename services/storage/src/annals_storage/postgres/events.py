"""Reads events."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from annals_common.errors import ResourceNotFoundError
from annals_storage.domain.events import Event, EventPage, EventQuery
from annals_storage.postgres.database import Database, Params, sql
from annals_storage.postgres.rows import event_from

_MAX_SEQ = 2**63 - 1
MAX_PAGE_BYTES = 16 * 1024 * 1024
"""Of text in one page: far below what gRPC carries."""
_LISTS = {
    # all_branches, descending
    (False, False): "list_events",
    (False, True): "list_events_descending",
    (True, False): "list_all_branches",
    (True, True): "list_all_branches_descending",
}


class PostgresEvents:
    """The read path of events. Deleted conversations are not visible, nor are deleted and erased
    events unless asked for.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> dict[UUID, Event]:
        """Return the visible ones by id."""
        params = {"tenant_id": tenant_id, "event_ids": list(event_ids)}
        [rows] = await self._database.run(tenant_id, (sql("get_events"), params))
        return {row["event_id"]: event_from(row) for row in rows}

    async def get_by_seq(self, tenant_id: UUID, conversation_id: UUID, seq: int) -> Event | None:
        """Return the event at a position, if it is visible."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "seq": seq}
        [rows] = await self._database.run(tenant_id, (sql("get_event_by_seq"), params))
        return event_from(rows[0]) if rows else None

    async def page(self, tenant_id: UUID, query: EventQuery) -> EventPage:
        """Return one page by seq.

        Raises ResourceNotFoundError without the conversation or the branch.
        """
        params = _params(tenant_id, query)
        name = _LISTS[query.all_branches, query.descending]
        [rows] = await self._database.run(tenant_id, (sql(name), params))
        if not rows:
            await self._check(tenant_id, query, params)
            return EventPage((), has_more=False)
        events = tuple(map(event_from, rows))
        return EventPage(events, rows[0]["has_more"], rows[0]["view_branch"])

    async def _check(self, tenant_id: UUID, query: EventQuery, params: Params) -> None:
        """Raise when there are no events because there is no conversation or branch."""
        [found] = await self._database.run(tenant_id, (sql("list_events_check"), params))
        if not found:
            raise ResourceNotFoundError("conversation", str(query.conversation_id))
        if not found[0]["has_branch"]:
            raise ResourceNotFoundError("branch", str(query.branch))


def _params(tenant_id: UUID, query: EventQuery) -> Params:
    return {
        "tenant_id": tenant_id,
        "conversation_id": query.conversation_id,
        "after_seq": query.after_seq,
        "before_seq": _MAX_SEQ if query.before_seq is None else query.before_seq,
        "start_time": query.start_time,
        "end_time": query.end_time,
        "types": [item.value for item in query.types] or None,
        "roles": [item.value for item in query.roles] or None,
        "tool_names": list(query.tool_names) or None,
        "branch": query.branch,
        "show_deleted": query.show_deleted,
        "limit": query.limit,
        "max_bytes": MAX_PAGE_BYTES,
    }
