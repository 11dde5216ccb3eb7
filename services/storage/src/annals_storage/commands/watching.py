"""Watches: new events of a conversation or an agent, as they are committed.

The tables decide what is new: a conversation's events by seq, an agent's by transaction. Wakes
only shorten the wait; a watch that misses one finds out at its next look.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Protocol

from prometheus_client import Gauge

from annals_common.errors import (
    DependencyUnavailableError,
    FieldInvalidError,
    OverloadedError,
)
from annals_storage.commands.wakes import Wakes
from annals_storage.commands.watch_sources import (
    AgentSource,
    ConversationSource,
    WatchRequest,
    WatchStores,
)
from annals_storage.domain.watching import WatchPage

WATCHES = Gauge("annals_watches", "Watches being served.")
HEARTBEAT_SECONDS = 30.0
MAX_WATCH_SECONDS = 15 * 60.0
"""After so long a watch must be resumed, which checks its credentials again."""


class _Source(Protocol):
    """One watch's way through the tables."""

    async def begin(self) -> WatchPage:
        """Return the empty page to begin with. Raises when there is nothing to watch."""

    async def look(self) -> WatchPage:
        """Return what came since, perhaps nothing."""


@dataclass(slots=True)
class WatchEvents:
    """Serves the watches of this process, `max_watches` at a time."""

    stores: WatchStores
    wakes: Wakes
    max_watches: int
    poll_seconds: float
    _running: int = field(default=0, init=False)

    async def __call__(self, request: WatchRequest) -> AsyncGenerator[WatchPage, None]:
        """Yield pages until the caller stops.

        The first is empty and comes at once; further empty ones are signs of life. Raises
        ResourceNotFoundError (also later, when the conversation is deleted), OverloadedError,
        FieldInvalidError for a cursor of another database, DependencyUnavailableError when the
        watch is to be resumed elsewhere or anew.
        """
        if self._running >= self.max_watches:
            raise OverloadedError(f"{self.max_watches} watches are being served")
        self._running += 1
        WATCHES.inc()
        try:
            with self.wakes.subscribed(request.tenant_id, request.conversation_id) as wake:
                pages = self._follow(_source(self.stores, request), wake)
                async with aclosing(pages):
                    async for page in pages:
                        yield page
        finally:
            self._running -= 1
            WATCHES.dec()

    async def _follow(
        self, source: _Source, wake: asyncio.Event
    ) -> AsyncGenerator[WatchPage, None]:
        loop = asyncio.get_running_loop()
        page, ends = await source.begin(), loop.time() + MAX_WATCH_SECONDS
        yield page
        last_sign = loop.time()
        while not self.wakes.closed and loop.time() < ends:
            wake.clear()
            page = await source.look()
            if page.events or loop.time() - last_sign >= HEARTBEAT_SECONDS:
                yield page
                last_sign = loop.time()
            if not page.more:
                await self._rest(wake, last_sign + HEARTBEAT_SECONDS - loop.time())
        raise DependencyUnavailableError("storage")

    async def _rest(self, wake: asyncio.Event, until_heartbeat_seconds: float) -> None:
        if self.wakes.closed:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(self.poll_seconds, until_heartbeat_seconds)):
                await wake.wait()


def _source(stores: WatchStores, request: WatchRequest) -> _Source:
    if request.conversation_id is not None:
        return ConversationSource(stores, request, request.conversation_id)
    if request.agent_id is not None:
        return AgentSource(stores, request, request.agent_id)
    raise FieldInvalidError("conversation_id", "is required, or agent_id")
