"""Erasure from every generation of the mirror there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar
from uuid import UUID

from annals_common.errors import DependencyUnavailableError
from annals_storage.commands.generations import Generations, same
from annals_storage.commands.mirror_erasure import EngineErasure
from annals_storage.domain.erasure import Counts

FoundT = TypeVar("FoundT")


class ErasureEverywhere:
    """`EngineErasure` in each collection; counts are their sums."""

    def __init__(self, generations: Generations) -> None:
        self._generations = generations

    async def erase_event(self, tenant_id: UUID, conversation_id: UUID, event_id: UUID) -> Counts:
        """Remove the points of an event."""
        return await self._erased(
            lambda each: each.erase_event(tenant_id, conversation_id, event_id)
        )

    async def erase_conversation(self, tenant_id: UUID, conversation_id: UUID) -> Counts:
        """Remove the points of a conversation."""
        return await self._erased(lambda each: each.erase_conversation(tenant_id, conversation_id))

    async def erase_tenant(self, tenant_id: UUID) -> Counts:
        """Remove whatever points of a tenant are left."""
        return await self._erased(lambda each: each.erase_tenant(tenant_id))

    async def count_event(self, tenant_id: UUID, event_id: UUID) -> int:
        """Return how many points an event has."""
        return await self._counted(lambda each: each.count_event(tenant_id, event_id))

    async def count_conversation(self, tenant_id: UUID, conversation_id: UUID) -> int:
        """Return how many points a conversation has, its memories' included."""
        return await self._counted(lambda each: each.count_conversation(tenant_id, conversation_id))

    async def count_user(self, tenant_id: UUID, user_id: str) -> int:
        """Return how many points are ascribed to a user, memories included."""
        return await self._counted(lambda each: each.count_user(tenant_id, user_id))

    async def count_tenant(self, tenant_id: UUID) -> int:
        """Return how many points a tenant has."""
        return await self._counted(lambda each: each.count_tenant(tenant_id))

    async def _erased(self, erase: Callable[[EngineErasure], Awaitable[Counts]]) -> Counts:
        return {"vectors": sum(counts["vectors"] for counts in await self._of_each(erase))}

    async def _counted(self, count: Callable[[EngineErasure], Awaitable[int]]) -> int:
        return sum(await self._of_each(count))

    async def _of_each(
        self, work: Callable[[EngineErasure], Awaitable[FoundT]]
    ) -> Iterable[FoundT]:
        done: dict[int, FoundT] = {}
        while due := [each for each in self._generations.live if each.number not in done]:
            try:
                for each in due:
                    done[each.number] = await work(EngineErasure(each.vectors))
            except DependencyUnavailableError:
                # One that went meanwhile does not answer, and need not.
                await self._generations.refresh()
                if same(due, [each for each in self._generations.live if each.number not in done]):
                    raise
            else:
                # One that came meanwhile may hold what is to go.
                await self._generations.refresh()
        return done.values()
