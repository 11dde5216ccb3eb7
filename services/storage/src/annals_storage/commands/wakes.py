"""Who of this process waits for news of what."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from uuid import UUID


class Wakes:
    """Who waits for what in this process."""

    def __init__(self) -> None:
        self._waiting: dict[UUID, dict[UUID | None, set[asyncio.Event]]] = {}
        self.closed = False

    @contextmanager
    def subscribed(self, tenant_id: UUID, conversation_id: UUID | None) -> Iterator[asyncio.Event]:
        """Yield an event that is set when the conversation, or any one (None), may have changed."""
        wake = asyncio.Event()
        waiting = self._waiting.setdefault(tenant_id, {}).setdefault(conversation_id, set())
        waiting.add(wake)
        try:
            yield wake
        finally:
            waiting.discard(wake)
            self._tidy(tenant_id, conversation_id)

    def wake(self, changed: Mapping[UUID, Collection[UUID]] | None) -> None:
        """Wake who waits for these conversations by tenant; None: everybody."""
        if changed is None:
            self._set(wake for tenant_id in self._waiting for wake in self._all_of(tenant_id))
            return
        for tenant_id, conversation_ids in changed.items():
            waiting = self._waiting.get(tenant_id, {})
            keys: tuple[UUID | None, ...] = (*conversation_ids, None)
            self._set(wake for key in keys for wake in waiting.get(key, ()))

    def close(self) -> None:
        """End every watch, now and from now on."""
        self.closed = True
        self.wake(None)

    def _all_of(self, tenant_id: UUID) -> list[asyncio.Event]:
        return [wake for waiting in self._waiting[tenant_id].values() for wake in waiting]

    @staticmethod
    def _set(wakes: Iterator[asyncio.Event]) -> None:
        for wake in wakes:
            wake.set()

    def _tidy(self, tenant_id: UUID, conversation_id: UUID | None) -> None:
        of_tenant = self._waiting.get(tenant_id, {})
        if not of_tenant.get(conversation_id):
            of_tenant.pop(conversation_id, None)
        if not of_tenant:
            self._waiting.pop(tenant_id, None)
