"""What the vector engine is asked and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from annals_storage.domain.events import TRUNK, Event, EventType, Role

DenseVector = NDArray[np.float32]
"""Shape (dimensions,), L2-normalised."""


class Signal(StrEnum):
    """A way of scoring chunks; of those that find, the name of the vector in the engine."""

    DENSE = "dense"
    BM25 = "bm25"
    MAXSIM = "maxsim"
    """Late interaction, of the best candidates of the other two; not a vector in the engine."""


@dataclass(frozen=True, slots=True)
class SparseVector:
    """Term weights. `indices` are distinct; both tuples have one length."""

    indices: tuple[int, ...]
    values: tuple[float, ...]


NO_VECTOR: DenseVector = np.empty(0, np.float32)
NO_TERMS = SparseVector((), ())
"""Of points that are compared, not written."""


class PointKind(StrEnum):
    """What a point in the engine stands for."""

    EVENT = "event"
    MEMORY = "memory"


class BranchPart(NamedTuple):
    """A part of a branch's view: the events of `branch` with after_seq < seq <= until_seq."""

    branch: int
    after_seq: int
    until_seq: int


@dataclass(frozen=True, slots=True)
class ChunkPoint:
    """One chunk as the engine holds it: vectors and filterable payload, no text.

    `current`: the event is in view on its conversation's current branch. `made_of`: the digest
    of what its vectors were made of; empty when unknown.
    """

    chunk_id: UUID
    tenant_id: UUID
    conversation_id: UUID
    event_id: UUID
    seq: int
    chunk_index: int
    event_type: EventType
    event_time: datetime
    dense: DenseVector
    bm25: SparseVector
    agent_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None
    role: Role | None = None
    tool_name: str | None = None
    branch: int = TRUNK
    current: bool = True
    made_of: str = ""


@dataclass(frozen=True, slots=True)
class MemoryPoint:
    """One memory as the engine holds it; its point's id is its own. `made_of`: as of chunks."""

    memory_id: UUID
    tenant_id: UUID
    conversation_id: UUID
    dense: DenseVector
    tags: tuple[str, ...] = ()
    agent_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None
    made_of: str = ""


@dataclass(frozen=True, slots=True)
class SearchScope:
    """Where to look for events. All conditions hold together; empty tuples and None mean "any".

    `tenant_id` has no default: there is no search without it. Without `branch`, what is in view
    on the current branch of each conversation is searched, with `all_branches` everything.
    `branch` goes with one conversation and, in the engine, with its `view`.
    """

    tenant_id: UUID
    conversation_ids: tuple[UUID, ...] = ()
    agent_ids: tuple[UUID, ...] = ()
    user_id: str | None = None
    session_id: str | None = None
    types: tuple[EventType, ...] = ()
    roles: tuple[Role, ...] = ()
    tool_names: tuple[str, ...] = ()
    start_time: datetime | None = None
    end_time: datetime | None = None
    exclude_event_ids: tuple[UUID, ...] = ()
    event_ids: tuple[UUID, ...] = ()
    branch: int | None = None
    view: tuple[BranchPart, ...] = ()
    all_branches: bool = False


@dataclass(frozen=True, slots=True)
class MemoryScope:
    """Where to look for memories. All conditions hold, every tag included; None means "any"."""

    tenant_id: UUID
    conversation_ids: tuple[UUID, ...] = ()
    agent_id: UUID | None = None
    user_id: str | None = None
    session_id: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FoundEvent:
    """A hit of the mirror, read back: the event, its conversation's owner, and where the chunk
    stands in the event's text, in characters.
    """

    event: Event
    chunk_start: int
    chunk_end: int
    agent_id: UUID | None
    user_id: str | None
    session_id: str | None


@dataclass(frozen=True, slots=True)
class VectorQuery:
    """The best `limit` chunks of `scope` for each given signal, each by its own score."""

    scope: SearchScope
    limit: int
    dense: DenseVector | None = None
    bm25: SparseVector | None = None


class ScoredChunk(NamedTuple):
    """A chunk the engine found. `score` is raw: cosine for dense, BM25 sum for bm25."""

    chunk_id: UUID
    event_id: UUID
    conversation_id: UUID
    seq: int
    chunk_index: int
    score: float


class Candidate(NamedTuple):
    """A chunk found, and what its event is compared by. See domain/rescoring.py.

    `token_signs` is None where a version that did not keep them mirrored the chunk last.
    `token_count`: of the whole event, in tokens of its words.
    """

    token_signs: bytes | None
    author_name: str | None
    role: Role | None
    token_count: int
    event_time: datetime


class ScoredMemory(NamedTuple):
    """A memory the engine found. `score` is the cosine."""

    memory_id: UUID
    score: float
