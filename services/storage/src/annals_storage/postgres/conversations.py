"""Reads and writes conversations."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from psycopg import errors
from psycopg.types.json import Jsonb

from annals_common.errors import FieldInvalidError, ResourceNotFoundError
from annals_storage.domain.conversations import (
    Conversation,
    ConversationChange,
    ConversationQuery,
    Creation,
    NewConversation,
)
from annals_storage.domain.ownership import EndUserMode, Owner
from annals_storage.postgres.database import Database, Statement, sql
from annals_storage.postgres.rows import conversation_from

_CHANGEABLE = (
    "agent_id",
    "org_id",
    "user_id",
    "session_id",
    "title",
    "status",
    "provider_conversation_id",
    "last_response_id",
    "client_context",
    "metadata",
)


class PostgresConversations:
    """Conversations of a tenant."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, tenant_id: UUID, new: NewConversation) -> Creation:
        """Insert, or find what has one of the ids or the request_id.

        Raises ResourceNotFoundError when the agent does not exist.
        """
        params = {
            "tenant_id": tenant_id,
            **{name: getattr(new, name) for name in new.__slots__},
            "client_context": Jsonb(new.client_context),
            "metadata": Jsonb(new.metadata),
        }
        try:
            created, [found] = await self._database.run(
                tenant_id, (sql("create_conversation"), params), (sql("get_creation"), params)
            )
        except errors.ForeignKeyViolation as error:
            raise ResourceNotFoundError("agent", str(new.agent_id)) from error
        return Creation(
            conversation=conversation_from(found),
            creation_hash=found["creation_hash"],
            created=bool(created),
            by_request=found["by_request"],
        )

    async def get(self, tenant_id: UUID, conversation_id: UUID) -> Conversation | None:
        """Return it, deleted or not."""
        [found] = await self._changed(tenant_id, conversation_id)
        return found

    async def get_by_host_id(self, tenant_id: UUID, host_id: str) -> Conversation | None:
        """Return what the host application knows by this id, deleted or not."""
        params = {"tenant_id": tenant_id, "host_id": host_id}
        [rows] = await self._database.run(tenant_id, (sql("get_conversation_by_host"), params))
        return conversation_from(rows[0]) if rows else None

    async def owners(self, tenant_id: UUID, conversation_ids: Collection[UUID]) -> list[Owner]:
        """Return the owners of those that exist, deleted ones included."""
        params = {"tenant_id": tenant_id, "conversation_ids": list(conversation_ids)}
        [rows] = await self._database.run(tenant_id, (sql("get_owners"), params))
        return [Owner(**{**row, "mode": EndUserMode(row["mode"] or "trusted")}) for row in rows]

    async def agent_mode(self, tenant_id: UUID, agent_id: UUID) -> EndUserMode | None:
        """Return what an agent accepts of end users; None when there is no such agent."""
        params = {"tenant_id": tenant_id, "agent_id": agent_id}
        [rows] = await self._database.run(tenant_id, (sql("get_agent_mode"), params))
        return EndUserMode(rows[0]["end_user_mode"]) if rows else None

    async def page(self, tenant_id: UUID, query: ConversationQuery) -> list[Conversation]:
        """Return one page, last active first."""
        cursor_time, cursor_id = query.cursor or (None, None)
        params = {
            "tenant_id": tenant_id,
            **{name: getattr(query, name) for name in query.__slots__ if name != "cursor"},
            "statuses": [status.value for status in query.statuses] or None,
            "title_pattern": _pattern(query.title_contains) if query.title_contains else None,
            "metadata": Jsonb(query.metadata) if query.metadata else None,
            "cursor_time": cursor_time,
            "cursor_id": cursor_id,
        }
        [rows] = await self._database.run(tenant_id, (sql("list_conversations"), params))
        return [conversation_from(row) for row in rows]

    async def update(
        self, tenant_id: UUID, change: ConversationChange
    ) -> tuple[Conversation | None, Conversation | None]:
        """Apply the change; return (changed, current). `changed` is None when nothing matched.

        Raises ResourceNotFoundError when the agent does not exist.
        """
        params = _change_params(tenant_id, change)
        moved = "agent_id" in change.values or {"user_id", "session_id"} & set(change.values)
        enqueue = [(sql("enqueue_existing_conversation"), params)] if moved else []
        try:
            changed, current = await self._changed(
                tenant_id,
                change.conversation_id,
                (sql("update_conversation"), params),
                extra=enqueue,
            )
        except errors.ForeignKeyViolation as error:
            raise ResourceNotFoundError("agent", str(change.values["agent_id"])) from error
        except errors.CheckViolation as error:
            raise _two_owners(change) from error
        return changed, current

    async def end(
        self, tenant_id: UUID, conversation_id: UUID, summary: str | None
    ) -> Conversation | None:
        """Complete it; return it as it is now, or None when it does not exist."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "summary": summary}
        _, current = await self._changed(
            tenant_id, conversation_id, (sql("end_conversation"), params)
        )
        return current

    async def archive(self, tenant_id: UUID, conversation_id: UUID) -> Conversation | None:
        """Put it away; return it as it is now, or None when it does not exist."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        _, current = await self._changed(
            tenant_id, conversation_id, (sql("archive_conversation"), params)
        )
        return current

    async def set_deleted(
        self, tenant_id: UUID, conversation_id: UUID, *, deleted: bool
    ) -> Conversation | None:
        """Hide or show it and have the mirror follow; return it as it is now."""
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id, "deleted": deleted}
        _, current = await self._changed(
            tenant_id,
            conversation_id,
            (sql("set_deleted"), params),
            extra=[(sql("enqueue_existing_conversation"), params)],
        )
        return current

    async def _changed(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        *statements: Statement,
        extra: Sequence[Statement] = (),
    ) -> list[Conversation | None]:
        params = {"tenant_id": tenant_id, "conversation_id": conversation_id}
        read = (sql("get_conversation"), params)
        results = await self._database.run(tenant_id, *statements, *extra, read)
        kept = [*results[: len(statements)], results[-1]]
        return [conversation_from(rows[0]) if rows else None for rows in kept]


def _pattern(words: str) -> str:
    """Return a LIKE pattern that these words match literally."""
    escaped = words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"


def _two_owners(change: ConversationChange) -> FieldInvalidError:
    given = "user_id" if change.values.get("user_id") else "session_id"
    other = "session_id" if given == "user_id" else "user_id"
    return FieldInvalidError(
        f"conversation.{given}",
        f"belongs to a user or to a session: name {other} in update_mask too, to clear it",
        change.values.get(given),
    )


def _change_params(tenant_id: UUID, change: ConversationChange) -> dict[str, Any]:
    values = {name: change.values.get(name) for name in _CHANGEABLE}
    for name in ("client_context", "metadata"):
        values[name] = Jsonb(values[name]) if name in change.values else None
    return {
        "tenant_id": tenant_id,
        "conversation_id": change.conversation_id,
        "expected_version": change.expected_version,
        **values,
        **{f"set_{name}": name in change.values for name in _CHANGEABLE},
    }
