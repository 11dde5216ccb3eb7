"""How commits reach watches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from annals_storage.domain.watching import Arrivals, Mark, Part, Place


class Notifier(Protocol):
    """Tells watches, in whatever process, that events were committed."""

    def notify(self, tenant_id: UUID, conversation_ids: Iterable[UUID]) -> None:
        """Have it told soon; returns at once and never fails."""


class WatchStore(Protocol):
    """The order in which an agent's events came."""

    async def mark(self) -> Mark:
        """Return the present moment."""

    async def arrivals(self, tenant_id: UUID, agent_id: UUID, place: Place) -> Arrivals:
        """Return what came after the place and is complete."""

    async def parts(self, tenant_id: UUID, agent_id: UUID, xid: int) -> list[Part]:
        """Return what a large transaction brought to the agent, by conversation."""
