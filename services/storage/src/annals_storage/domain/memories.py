"""Memories: statements worth keeping, with tags, found by meaning."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from annals_storage.domain.indexing import Backlog


@dataclass(frozen=True, slots=True)
class Memory:
    """A stored memory. `embedding_dimension` is None until the indexer has embedded it."""

    memory_id: UUID
    conversation_id: UUID
    content: str
    tags: tuple[str, ...]
    metadata: dict[str, Any]
    embedding_dimension: int | None
    caller_embedding: bool
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A validated memory on its way into the store.

    `anonymous`: the conversation is created if it does not exist, for this agent and session.
    `embedding`: of length 1, as float16, little endian; None: the indexer makes it.
    """

    memory_id: UUID
    conversation_id: UUID
    content: str
    payload_hash: bytes
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    embedding: bytes | None = None
    embedding_model: str | None = None
    idempotency_key: str | None = None
    anonymous: bool = False
    agent_id: UUID | None = None
    session_id: str | None = None


class StoreVerdict(StrEnum):
    """What became of a memory that was to be stored."""

    STORED = "stored"
    REPLAYED = "replayed"
    CONVERSATION_NOT_FOUND = "conversation_not_found"
    AGENT_NOT_FOUND = "agent_not_found"
    IDEMPOTENCY_KEY_REUSED = "idempotency_key_reused"
    MEMORY_EXISTS = "memory_exists"


@dataclass(frozen=True, slots=True)
class StoreOutcome:
    """The verdict, with the memory when it is stored, by this call or by an earlier one."""

    verdict: StoreVerdict
    memory: Memory | None = None


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """New values by field name (content, tags, metadata); only the fields named are changed.

    With new content, `embedding` as in NewMemory.
    """

    memory_id: UUID
    values: dict[str, Any]
    expected_version: int | None = None
    embedding: bytes | None = None
    embedding_model: str | None = None


@dataclass(frozen=True, slots=True)
class MemoryQuery:
    """A page of memories, newest first; every tag must be there.

    `cursor` is (created_at, memory_id) of the last row of the previous page.
    """

    conversation_id: UUID | None = None
    tags: tuple[str, ...] = ()
    limit: int = 100
    cursor: tuple[datetime, UUID] | None = None


@dataclass(frozen=True, slots=True)
class FoundMemory:
    """A hit of the mirror, read back: the memory and its conversation's owner."""

    memory: Memory
    agent_id: UUID | None
    user_id: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class MemoryHit:
    """One memory found. `similarity`: cosine, 0-1."""

    memory: Memory
    similarity: float


@dataclass(frozen=True, slots=True)
class MemorySearchResult:
    """The hits, most similar first, and how complete they are."""

    hits: tuple[MemoryHit, ...]
    backlog: Backlog
    degraded: tuple[str, ...]
    search_time_ms: float
