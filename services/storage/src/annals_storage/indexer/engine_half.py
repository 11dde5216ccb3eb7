"""What the engine is still to be told once PostgreSQL holds what it should of a batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

from annals_common.errors import EngineUnavailableError
from annals_storage.domain.search import ChunkPoint, MemoryPoint
from annals_storage.ports.vectors import VectorWriter


@dataclass(slots=True)
class EngineWork:
    """Deletions and points of one tenant, from what was read of it a moment ago.

    `unsure_events`: of these the engine might hold points that PostgreSQL no longer knows of.
    `former_chunks`: what events had before.
    """

    tenant_id: UUID
    gone_conversations: list[UUID] = field(default_factory=list)
    gone_events: list[UUID] = field(default_factory=list)
    unsure_events: list[UUID] = field(default_factory=list)
    former_chunks: list[UUID] = field(default_factory=list)
    gone_memories: list[UUID] = field(default_factory=list)
    points: list[ChunkPoint | MemoryPoint] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not (
            self.gone_conversations
            or self.gone_events
            or self.unsure_events
            or self.former_chunks
            or self.gone_memories
            or self.points
        )


@dataclass(slots=True)
class EngineOutage:
    """Whether the engine is down, as far as those know who write to it."""

    is_on: bool = False


class EngineHalf:
    """Brings work to the engine, and leaves it alone from its first failure until it answers."""

    def __init__(self, vectors: VectorWriter, outage: EngineOutage) -> None:
        self._vectors, self._outage = vectors, outage

    async def do(self, work: EngineWork) -> None:
        """Raises EngineUnavailableError; then nothing of it may be taken for done."""
        if work.is_empty:
            return
        if self._outage.is_on:
            raise EngineUnavailableError
        try:
            await self._do(work)
        except EngineUnavailableError:
            self._outage.is_on = True
            raise

    async def answers(self) -> bool:
        """Ask the engine whether it is there."""
        try:
            await self._vectors.ping()
        except EngineUnavailableError:
            return False
        self._outage.is_on = False
        return True

    async def _do(self, work: EngineWork) -> None:
        for conversation_id in work.gone_conversations:
            await self._vectors.delete_conversation(work.tenant_id, conversation_id)
        # Points go last and come back at once: between the two, searches miss them.
        await self._vectors.delete_events(work.tenant_id, [*work.gone_events, *work.unsure_events])
        await self._vectors.delete_memories(work.tenant_id, work.gone_memories)
        await self._vectors.upsert(work.points)
        await self._vectors.delete_chunks(work.tenant_id, work.former_chunks)
