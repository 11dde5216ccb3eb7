"""How far the mirror is behind, and waiting for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from uuid import UUID

from annals_storage.domain.indexing import Backlog, OutboxKind
from annals_storage.ports.outbox import Outbox

POLL_SECONDS = 0.02
FRESHNESS_TIMEOUT_SECONDS = 5.0
FRESHNESS_TIMEOUT = "freshness_timeout"


class Freshness:
    """The backlog of what a search could miss: entries of `kinds`."""

    def __init__(self, outbox: Outbox, kinds: Sequence[OutboxKind]) -> None:
        self._outbox, self._kinds = outbox, tuple(kinds)

    async def backlog(self, tenant_id: UUID, conversation_ids: Sequence[UUID]) -> Backlog:
        """Return what waits, of these conversations or of the tenant."""
        return await self._outbox.backlog(
            tenant_id, conversation_ids=conversation_ids, kinds=self._kinds
        )

    async def wait(
        self, tenant_id: UUID, conversation_ids: Sequence[UUID], timeout_seconds: float | None
    ) -> bool:
        """Wait until everything enqueued before now is mirrored; return whether it is.

        With None nothing is waited for, and that is fresh enough. For an engine that is down nobody
        waits: what lacks nothing else is found by its words.
        """
        if timeout_seconds is None:
            return True
        backlog = await self.backlog(tenant_id, conversation_ids)
        asked_at, deadline = backlog.as_of, time.monotonic() + timeout_seconds
        while backlog.pending > backlog.held:
            if time.monotonic() >= deadline:
                return False
            await asyncio.sleep(POLL_SECONDS)
            backlog = await self._outbox.backlog(
                tenant_id,
                conversation_ids=conversation_ids,
                kinds=self._kinds,
                enqueued_until=asked_at,
            )
        return not backlog.pending
