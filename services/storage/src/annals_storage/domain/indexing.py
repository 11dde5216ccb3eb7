"""What the indexer works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from uuid import UUID

from annals_storage.domain.events import Event


class OutboxKind(StrEnum):
    """What a key in the outbox names."""

    EVENT = "event"
    CONVERSATION = "conversation"
    MEMORY = "memory"


class Priority(IntEnum):
    """Which lane of the outbox a key waits in; what has the lower number goes first."""

    INTERACTIVE = 0
    BULK = 1


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """A key whose mirror may be stale, leased to one worker.

    `generation` counts the changes of the row; `attempts` the leases so far. `priority`: see
    `Priority`.
    """

    tenant_id: UUID
    kind: OutboxKind
    key: UUID
    conversation_id: UUID
    generation: int
    attempts: int
    priority: int = Priority.INTERACTIVE


@dataclass(frozen=True, slots=True)
class IndexableEvent:
    """An event with what the engine filters by. `deleted`: it must not be in the mirror.

    `current`: it is in view on its conversation's current branch.
    """

    event: Event
    deleted: bool
    current: bool
    agent_id: UUID | None
    user_id: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk as PostgreSQL keeps it.

    `embedding`: float16, little endian. `token_signs`: see domain/late_interaction.py; `terms` and
    `term_weights`: see domain/lexical.py.
    """

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
    token_signs: bytes
    terms: list[int]
    term_weights: bytes


@dataclass(frozen=True, slots=True)
class StoredEmbedding:
    """The embedding of a text as a chunk keeps it."""

    embedding: bytes
    token_signs: bytes


@dataclass(frozen=True, slots=True)
class KnownChunks:
    """What PostgreSQL holds before a batch is mirrored.

    `embeddings` by the hash of the text. `chunk_ids`: of the events of
    the batch, as they were.
    """

    embeddings: Mapping[bytes, StoredEmbedding]
    chunk_ids: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class IndexableMemory:
    """A memory with what the engine filters by. `deleted`: it must not be in the mirror.

    `embedding`: float16, little endian; None while there is none by the model in use.
    """

    memory_id: UUID
    conversation_id: UUID
    content: str
    tags: tuple[str, ...]
    version: int
    embedding: bytes | None
    deleted: bool
    agent_id: UUID | None
    user_id: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class MemoryEmbedding:
    """The embedding of a memory at a version. `embedding`: float16, little endian."""

    memory_id: UUID
    version: int
    embedding: bytes


@dataclass(frozen=True, slots=True)
class MemoryTerms:
    """The words of a memory at a version: see domain/lexical.py."""

    memory_id: UUID
    version: int
    terms: list[int]
    term_weights: bytes


@dataclass(frozen=True, slots=True)
class OutboxTotals:
    """The backlog of one lane over all tenants. `lag_seconds`: age of its oldest entry."""

    priority: Priority
    pending: int
    parked: int
    lag_seconds: float


@dataclass(frozen=True, slots=True)
class ParkedEntry:
    """An entry that failed too often. `error`: of the last attempt, without content."""

    kind: OutboxKind
    key: UUID
    conversation_id: UUID
    attempts: int
    error: str
    parked_at: datetime


@dataclass(frozen=True, slots=True)
class Backlog:
    """The backlog of a tenant or of some of its conversations, at the moment `as_of`.

    `held`: how many of the pending ones lack nothing but an engine that answers.
    """

    pending: int
    parked: int
    held: int
    oldest: datetime | None
    as_of: datetime

    @property
    def lag_ms(self) -> int:
        """Age of the oldest waiting entry."""
        if self.oldest is None:
            return 0
        return max(0, int((self.as_of - self.oldest).total_seconds() * 1000))
