"""What the indexer works on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from annals_storage.domain.events import Event


class OutboxKind(StrEnum):
    """What a key in the outbox names."""

    EVENT = "event"
    CONVERSATION = "conversation"


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A key whose mirror may be stale, leased to one worker.

    `generation` counts the changes of the row; `attempts` the leases so far.
    """

    tenant_id: UUID
    kind: OutboxKind
    key: UUID
    conversation_id: UUID
    generation: int
    attempts: int


@dataclass(frozen=True, slots=True)
class IndexableEvent:
    """An event with what the engine filters by. `deleted`: it must not be in the mirror."""

    event: Event
    deleted: bool
    agent_id: UUID | None
    user_id: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as PostgreSQL keeps it. `embedding`: float16, little endian."""

    chunk_id: UUID
    event_id: UUID
    conversation_id: UUID
    chunk_index: int
    start_char: int
    end_char: int
    token_count: int
    content_hash: bytes
    embedding: bytes
    embedding_model: str


@dataclass(frozen=True, slots=True)
class OutboxTotals:
    """The backlog over all tenants."""

    pending: int
    parked: int
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class Backlog:
    """The backlog of a tenant or of some of its conversations, at the moment `as_of`."""

    pending: int
    parked: int
    oldest: datetime | None
    as_of: datetime

    @property
    def lag_ms(self) -> int:
        """Age of the oldest waiting entry."""
        if self.oldest is None:
            return 0
        return max(0, int((self.as_of - self.oldest).total_seconds() * 1000))
