"""Reads threads and tool calls."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from annals_common.errors import ResourceNotFoundError
from annals_storage.domain.events import Event, EventType
from annals_storage.domain.threads import Thread, ThreadDirection, ThreadQuery, ToolCall
from annals_storage.postgres.database import Database, Transaction, sql
from annals_storage.postgres.rows import event_from

MAX_TOOL_CALLS = 1_000
"""That one message may show."""
_MAX_SEQ = 2**62


class PostgresThreads:
    """Events that belong together. Deleted and erased events are not visible."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def thread(self, tenant_id: UUID, query: ThreadQuery) -> Thread:
        """Return what an event answers and what answers it. Raises ResourceNotFoundError."""
        params = {
            "tenant_id": tenant_id,
            "event_id": query.event_id,
            "up_links": _links(query, ThreadDirection.DESCENDANTS),
            "down_links": _links(query, ThreadDirection.ANCESTORS),
            "limit": query.limit,
        }
        [rows] = await self._database.run(tenant_id, (sql("get_thread"), params))
        if not rows:
            raise ResourceNotFoundError("event", str(query.event_id))
        return Thread(
            events=tuple(map(event_from, rows)),
            distances=tuple(row["distance"] for row in rows),
            truncated=rows[0]["truncated"],
        )

    async def tool_call(self, tenant_id: UUID, event_id: UUID) -> ToolCall:
        """Return a call, by its event or its result's. Raises ResourceNotFoundError."""
        async with self._database.transaction(tenant_id) as transaction:
            look = _Look(transaction, tenant_id)
            branch, call_id = await look.call_of(event_id)
            [found] = await look.pairs(branch, [call_id])
            return found

    async def tool_call_by_id(
        self, tenant_id: UUID, conversation_id: UUID, tool_call_id: str
    ) -> ToolCall:
        """Return the newest call of this id on the current branch. Raises ResourceNotFoundError."""
        async with self._database.transaction(tenant_id) as transaction:
            look = _Look(transaction, tenant_id, conversation_id)
            branch, call_id = await look.newest_call(tool_call_id)
            [found] = await look.pairs(branch, [call_id])
            return found

    async def tool_calls(self, tenant_id: UUID, message_event_id: UUID) -> list[ToolCall]:
        """Return the calls a message triggered, by seq. Raises ResourceNotFoundError."""
        async with self._database.transaction(tenant_id) as transaction:
            look = _Look(transaction, tenant_id)
            branch, call_ids = await look.calls_of_message(message_event_id)
            return await look.pairs(branch, call_ids)


def _links(query: ThreadQuery, other: ThreadDirection) -> int:
    return -1 if query.direction is other else query.depth


class _Look:
    """A look at one conversation."""

    def __init__(
        self, transaction: Transaction, tenant_id: UUID, conversation_id: UUID | None = None
    ) -> None:
        self._transaction = transaction
        self._ids: dict[str, Any] = {"tenant_id": tenant_id, "conversation_id": conversation_id}

    async def call_of(self, event_id: UUID) -> tuple[int, UUID]:
        """Return the branch to look at and the call that an event is, or is the result of."""
        event, branch = await self._locate(event_id)
        if event.body.type is EventType.TOOL_CALL:
            return branch, event_id
        if event.body.type is EventType.TOOL_RESULT:
            for view in dict.fromkeys((branch, event.branch)):
                [found] = await self._calls(event.body.tool_call_id, view, event.seq)
                if found["event_id"] is not None:
                    return view, found["event_id"]
        raise ResourceNotFoundError("tool call", str(event_id))

    async def newest_call(self, tool_call_id: str) -> tuple[int, UUID]:
        """Return the current branch and the newest call of an id there."""
        found = await self._calls(tool_call_id, None, _MAX_SEQ)
        if not found:
            raise ResourceNotFoundError("conversation", str(self._ids["conversation_id"]))
        if found[0]["event_id"] is None:
            raise ResourceNotFoundError("tool call", tool_call_id)
        return found[0]["view_branch"], found[0]["event_id"]

    async def calls_of_message(self, event_id: UUID) -> tuple[int, list[UUID]]:
        """Return the branch to look at and the calls a message triggered, by seq."""
        event, branch = await self._locate(event_id)
        if event.body.type is not EventType.MESSAGE:
            raise ResourceNotFoundError("message", str(event_id))
        rows = await self._run(
            "list_tool_calls",
            event_id=event_id,
            seq=event.seq,
            branch=branch,
            limit=MAX_TOOL_CALLS,
        )
        return branch, [row["event_id"] for row in rows]

    async def pairs(self, branch: int, call_ids: list[UUID]) -> list[ToolCall]:
        """Return the calls with what came of them, in order."""
        pairs = await self._run("pair_tool_calls", branch=branch, event_ids=call_ids)
        wanted = [id_ for pair in pairs for id_ in (pair["call_id"], pair["result_id"]) if id_]
        events = await self._events(wanted)
        found = {
            pair["call_id"]: ToolCall(
                call=events[pair["call_id"]],
                result=events.get(pair["result_id"]),
                message_id=pair["message_id"],
            )
            for pair in pairs
            if pair["call_id"] in events
        }
        return [found[call_id] for call_id in call_ids if call_id in found]

    async def _events(self, event_ids: list[UUID]) -> dict[UUID, Event]:
        rows = await self._run("get_events", event_ids=event_ids)
        return {row["event_id"]: event_from(row) for row in rows}

    async def _locate(self, event_id: UUID) -> tuple[Event, int]:
        rows = await self._run("locate_event", event_id=event_id)
        if not rows:
            raise ResourceNotFoundError("event", str(event_id))
        event = event_from(rows[0])
        self._ids["conversation_id"] = event.conversation_id
        return event, rows[0]["view_branch"]

    async def _calls(
        self, tool_call_id: str | None, branch: int | None, before_seq: int
    ) -> list[dict[str, Any]]:
        return await self._run(
            "find_tool_call", tool_call_id=tool_call_id, branch=branch, before_seq=before_seq
        )

    async def _run(self, name: str, **params: Any) -> list[dict[str, Any]]:
        return await self._transaction.run(sql(name), {**self._ids, **params})
