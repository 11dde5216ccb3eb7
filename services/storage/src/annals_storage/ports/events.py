"""Where events are stored, changed and read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol
from uuid import UUID

from annals_common.errors import AnnalsError
from annals_common.principal import Actor
from annals_storage.domain.appending import Append, AppendResult
from annals_storage.domain.changing import (
    EditedEvent,
    EventEdit,
    HistoryPage,
    HistoryQuery,
    StoredTurn,
    TurnStore,
)
from annals_storage.domain.events import Event, EventPage, EventQuery
from annals_storage.domain.threads import Thread, ThreadQuery, ToolCall


class AppendStore(Protocol):
    """Where appends become durable."""

    async def store(self, appends: Sequence[Append]) -> list[AppendResult | AnnalsError]:
        """Store appends of one tenant in one transaction; return an outcome for each."""


class TurnStorage(Protocol):
    """Where turns are stored."""

    async def store(self, turn: TurnStore) -> StoredTurn:
        """Store a turn, once for each idempotency key. Raises EventIsColdError."""


class EventChangeStore(Protocol):
    """Where stored events change, and their history is read."""

    async def edit(self, edit: EventEdit) -> EditedEvent:
        """Edit an event, once for each idempotency key. Raises EventIsColdError."""

    async def set_deleted(
        self, tenant_id: UUID, event_id: UUID, actor: Actor, *, deleted: bool
    ) -> Event:
        """Hide or show an event; return it as it is now. Raises EventIsColdError."""

    async def history(self, tenant_id: UUID, query: HistoryQuery) -> HistoryPage:
        """Return one page, newest first. Raises ResourceNotFoundError."""


class EventStore(Protocol):
    """Where events are read."""

    async def get(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> dict[UUID, Event]:
        """Return the visible ones by id."""

    async def get_by_seq(self, tenant_id: UUID, conversation_id: UUID, seq: int) -> Event | None:
        """Return the event at a position, if it is visible."""

    async def page(self, tenant_id: UUID, query: EventQuery) -> EventPage:
        """Return one page by seq. Raises ResourceNotFoundError without the conversation."""


class ThreadStore(Protocol):
    """Where events that belong together are read. Every method raises ResourceNotFoundError."""

    async def thread(self, tenant_id: UUID, query: ThreadQuery) -> Thread:
        """Return what an event answers and what answers it."""

    async def tool_call(self, tenant_id: UUID, event_id: UUID) -> ToolCall:
        """Return a call, by its event or its result's."""

    async def tool_call_by_id(
        self, tenant_id: UUID, conversation_id: UUID, tool_call_id: str
    ) -> ToolCall:
        """Return the newest call of this id on the current branch."""

    async def tool_calls(self, tenant_id: UUID, message_event_id: UUID) -> list[ToolCall]:
        """Return the calls a message triggered, by seq."""
