"""Changes stored events: one at a time for what cannot go faster, words brought back first."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar
from uuid import UUID
from weakref import WeakValueDictionary

from annals_common.errors import ColdStorageUnavailableError
from annals_common.principal import Actor
from annals_storage.domain.changing import (
    EditedEvent,
    EventEdit,
    EventIsColdError,
    HistoryPage,
    HistoryQuery,
    StoredTurn,
    TurnStore,
)
from annals_storage.domain.events import Event
from annals_storage.ports.events import EventChangeStore, TurnStorage
from annals_storage.ports.live import Notifier

T = TypeVar("T")


class BringsBack(Protocol):
    """Cold storage, as far as changes need it."""

    async def bring_back(
        self, tenant_id: UUID, conversation_id: UUID, event_ids: Sequence[UUID]
    ) -> object:
        """Have the words of these events in PostgreSQL again."""


class Queue:
    """Lets callers with the same key go one by one.

    They would wait for each other in PostgreSQL anyway, each holding a connection.
    """

    def __init__(self) -> None:
        self._locks: WeakValueDictionary[object, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn_of(self, key: object) -> AsyncIterator[None]:
        """Wait until nobody with this key is inside."""
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        async with lock:
            yield


class ChangeEvents:
    """Turns, edits, deletions and the history of events."""

    def __init__(
        self,
        *,
        turns: TurnStorage,
        changes: EventChangeStore,
        notifier: Notifier,
        cold_storage: BringsBack | None = None,
    ) -> None:
        self._turns, self._changes = turns, changes
        self._notifier, self._cold_storage = notifier, cold_storage
        self._queue = Queue()

    async def store_turn(self, turn: TurnStore) -> StoredTurn:
        """Store a turn. Raises the errors of `TurnStorage.store` but EventIsColdError."""
        async with self._queue.turn_of((turn.tenant_id, turn.conversation_id)):
            stored = await self._warm(turn.tenant_id, lambda: self._turns.store(turn))
        if stored.created and not stored.replayed:
            self._notifier.notify(turn.tenant_id, {stored.event.conversation_id})
        return stored

    async def edit(self, edit: EventEdit) -> EditedEvent:
        """Edit an event. Raises the errors of `EventChangeStore.edit` but EventIsColdError."""
        async with self._queue.turn_of((edit.tenant_id, edit.event_id)):
            return await self._warm(edit.tenant_id, lambda: self._changes.edit(edit))

    async def set_deleted(
        self, tenant_id: UUID, event_id: UUID, actor: Actor, *, deleted: bool
    ) -> Event:
        """Hide or show an event. Raises ResourceNotFoundError, EventErasedError."""
        return await self._warm(
            tenant_id,
            lambda: self._changes.set_deleted(tenant_id, event_id, actor, deleted=deleted),
        )

    async def history(self, tenant_id: UUID, query: HistoryQuery) -> HistoryPage:
        """Return one page, newest first. Raises ResourceNotFoundError."""
        return await self._changes.history(tenant_id, query)

    async def _warm(self, tenant_id: UUID, change: Callable[[], Awaitable[T]]) -> T:
        """Make a change, after its event's words were brought back where they are elsewhere."""
        try:
            return await change()
        except EventIsColdError as cold:
            if self._cold_storage is None:
                raise ColdStorageUnavailableError from cold
            conversation_id, event_id = cold.conversation_id, cold.event_id
        await self._cold_storage.bring_back(tenant_id, conversation_id, [event_id])
        try:
            return await change()
        except EventIsColdError as cold:
            # Taken away again at once: the caller may retry.
            raise ColdStorageUnavailableError from cold
