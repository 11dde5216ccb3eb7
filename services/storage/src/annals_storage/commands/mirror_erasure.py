"""Has the vector engine forget: at once where this process may, else through the outbox."""

from __future__ import annotations

import asyncio
import time
from uuid import UUID

from annals_common.errors import DependencyUnavailableError
from annals_storage.domain.erasure import Counts
from annals_storage.domain.search import MemoryScope, SearchScope
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.vectors import VectorIndex

POLL_SECONDS = 0.1
PATIENCE_SECONDS = 60.0
PAGE = 1_000


class EngineErasure:
    """Deletes points in the engine itself, and counts them before."""

    def __init__(self, vectors: VectorIndex) -> None:
        self._vectors = vectors

    async def erase_event(
        self,
        tenant_id: UUID,
        conversation_id: UUID,  # noqa: ARG002 - the port's
        event_id: UUID,
    ) -> Counts:
        """Remove the points of an event."""
        found = await self.count_event(tenant_id, event_id)
        await self._vectors.delete_events(tenant_id, [event_id])
        return {"vectors": found}

    async def erase_conversation(self, tenant_id: UUID, conversation_id: UUID) -> Counts:
        """Remove the points of a conversation."""
        found = await self.count_conversation(tenant_id, conversation_id)
        await self._vectors.delete_conversation(tenant_id, conversation_id)
        return {"vectors": found}

    async def erase_tenant(self, tenant_id: UUID) -> Counts:
        """Remove whatever points of a tenant are left."""
        found = await self.count_tenant(tenant_id)
        while page := await self._vectors.list_chunks(tenant_id, after=None, limit=PAGE):
            await self._vectors.delete_chunks(tenant_id, [point_id for point_id, _ in page])
        return {"vectors": found}

    async def count_event(self, tenant_id: UUID, event_id: UUID) -> int:
        """Return how many points an event has."""
        return await self._vectors.count(
            SearchScope(tenant_id, event_ids=(event_id,), all_branches=True)
        )

    async def count_conversation(self, tenant_id: UUID, conversation_id: UUID) -> int:
        """Return how many points a conversation has, its memories' included."""
        ids = (conversation_id,)
        events = SearchScope(tenant_id, conversation_ids=ids, all_branches=True)
        memories = MemoryScope(tenant_id, conversation_ids=ids)
        return await self._vectors.count(events) + await self._vectors.count(memories)

    async def count_user(self, tenant_id: UUID, user_id: str) -> int:
        """Return how many points are ascribed to a user, memories included."""
        events = SearchScope(tenant_id, user_id=user_id, all_branches=True)
        memories = MemoryScope(tenant_id, user_id=user_id)
        return await self._vectors.count(events) + await self._vectors.count(memories)

    async def count_tenant(self, tenant_id: UUID) -> int:
        """Return how many points a tenant has."""
        return await self._vectors.count_points(tenant_id)


class OutboxErasure:
    """Waits until the process that holds the engine has worked off the outbox.

    For a process beside the one with the embedded engine: it cannot count points.
    """

    def __init__(self, outbox: Outbox, *, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._outbox, self._patience_seconds = outbox, patience_seconds

    async def erase_event(
        self,
        tenant_id: UUID,
        conversation_id: UUID,
        event_id: UUID,  # noqa: ARG002 - the port's
    ) -> Counts:
        """Raises DependencyUnavailableError when nobody works off the outbox in time."""
        await self._settled(tenant_id, conversation_id)
        return {}

    async def erase_conversation(self, tenant_id: UUID, conversation_id: UUID) -> Counts:
        """Raises DependencyUnavailableError when nobody works off the outbox in time."""
        await self._settled(tenant_id, conversation_id)
        return {}

    async def erase_tenant(self, tenant_id: UUID) -> Counts:
        """Raises DependencyUnavailableError when nobody works off the outbox in time."""
        await self._settled(tenant_id, None)
        return {}

    async def _settled(self, tenant_id: UUID, conversation_id: UUID | None) -> None:
        only = [conversation_id] if conversation_id else []
        deadline = time.monotonic() + self._patience_seconds
        while True:
            backlog = await self._outbox.backlog(tenant_id, conversation_ids=only)
            if not backlog.pending and not backlog.parked:
                return
            if time.monotonic() > deadline:
                raise DependencyUnavailableError("vector engine")
            await asyncio.sleep(POLL_SECONDS)
