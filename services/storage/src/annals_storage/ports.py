"""What the use cases need from the outside world. `app` chooses who provides it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from annals_common.errors import AnnalsError
from annals_common.principal import Scope
from annals_storage.domain.appending import Append, AppendResult
from annals_storage.domain.conversations import (
    Conversation,
    ConversationChange,
    ConversationQuery,
    Creation,
    NewConversation,
)
from annals_storage.domain.events import Event, EventPage, EventQuery
from annals_storage.domain.indexing import (
    Backlog,
    ChunkRow,
    IndexableEvent,
    OutboxEntry,
    OutboxTotals,
)
from annals_storage.domain.ownership import Owner
from annals_storage.domain.search import (
    BranchPart,
    ChunkPoint,
    DenseVector,
    FoundEvent,
    MemoryPoint,
    MemoryScope,
    ScoredChunk,
    ScoredMemory,
    SearchScope,
    Signal,
    SparseVector,
    VectorQuery,
)
from annals_storage.domain.tenancy import Agent, ApiKey, Tenant

PageCursor = tuple[datetime, UUID] | None
"""(created_at, id) of the last row of the previous page; None for the first page."""


class VectorIndex(Protocol):
    """A vector engine that mirrors chunks of events, and memories.

    Implementations are safe to use concurrently.

    Every method raises `DependencyUnavailableError("vector engine")` when the engine does
    not answer. Writes are durable against a crash of the process once they return.
    """

    async def open(self) -> None:
        """Create or open the collection; safe to repeat."""

    async def close(self) -> None:
        """Flush and let go of everything."""

    async def ping(self) -> None:
        """Answer, or raise."""

    async def upsert(self, points: Sequence[ChunkPoint | MemoryPoint]) -> None:
        """Insert or replace points by `chunk_id` or `memory_id`."""

    async def delete_events(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        """Remove every chunk of these events."""

    async def delete_chunks(self, tenant_id: UUID, chunk_ids: Sequence[UUID]) -> None:
        """Remove these chunks."""

    async def delete_memories(self, tenant_id: UUID, memory_ids: Sequence[UUID]) -> None:
        """Remove these memories."""

    async def delete_conversation(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Remove every chunk and memory of this conversation."""

    async def query(self, query: VectorQuery) -> Mapping[Signal, list[ScoredChunk]]:
        """Return, per signal asked, at most `query.limit` chunks of the scope, best first."""

    async def query_memories(
        self, scope: MemoryScope, dense: DenseVector, limit: int
    ) -> list[ScoredMemory]:
        """Return at most `limit` memories of the scope, nearest first."""

    async def count(self, scope: SearchScope | MemoryScope) -> int:
        """Return the exact number of points in the scope."""

    async def count_points(self, tenant_id: UUID) -> int:
        """Return the exact number of points of a tenant, of every kind and branch."""

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through (chunk_id, event_id) and twice each memory_id, ordered by the first."""


class Embedder(Protocol):
    """A text embedding model."""

    @property
    def model(self) -> str:
        """Name under which embeddings are stored."""

    @property
    def dimensions(self) -> int:
        """Length of a vector."""

    @property
    def max_tokens(self) -> int:
        """Tokens one text may have, special tokens included; more are cut off."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return L2-normalised vectors of shape (len(texts), dimensions), in order."""

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Return the (start, end) character offsets of the model's tokens, specials left out."""


class SparseEncoder(Protocol):
    """Turns text into term weights for BM25."""

    def encode_document(self, text: str) -> SparseVector:
        """Encode a text to be found."""

    def encode_query(self, text: str) -> SparseVector:
        """Encode a query."""


class TokenCounter(Protocol):
    """Counts tokens for the ledger of a conversation."""

    def count(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text in o200k_base."""


class AppendStore(Protocol):
    """Where appends become durable."""

    async def store(self, appends: Sequence[Append]) -> list[AppendResult | AnnalsError]:
        """Store appends of one tenant in one transaction; return an outcome for each."""


class EventStore(Protocol):
    """Where events are read."""

    async def get(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> dict[UUID, Event]:
        """Return the visible ones by id."""

    async def get_hits(
        self, tenant_id: UUID, chunks: Sequence[tuple[UUID, int]]
    ) -> dict[UUID, FoundEvent]:
        """Return, by event id, the visible events of (event_id, chunk_index)."""

    async def get_by_seq(self, tenant_id: UUID, conversation_id: UUID, seq: int) -> Event | None:
        """Return the event at a position, if it is visible."""

    async def page(self, tenant_id: UUID, query: EventQuery) -> EventPage:
        """Return one page by seq. Raises ResourceNotFoundError without the conversation."""


class ConversationStore(Protocol):
    """Where conversations are kept."""

    async def create(self, tenant_id: UUID, new: NewConversation) -> Creation:
        """Insert, or find what has the id or the request_id."""

    async def get(self, tenant_id: UUID, conversation_id: UUID) -> Conversation | None:
        """Return it, deleted or not."""

    async def get_by_host_id(self, tenant_id: UUID, host_id: str) -> Conversation | None:
        """Return what the host application knows by this id, deleted or not."""

    async def get_current(
        self, tenant_id: UUID, *, agent_id: UUID | None, user_id: str | None, session_id: str | None
    ) -> Conversation | None:
        """Return the last active one that takes events."""

    async def page(self, tenant_id: UUID, query: ConversationQuery) -> list[Conversation]:
        """Return one page, last active first."""

    async def update(
        self, tenant_id: UUID, change: ConversationChange
    ) -> tuple[Conversation | None, Conversation | None]:
        """Apply the change; return (changed, current). `changed` is None when nothing matched."""

    async def end(
        self, tenant_id: UUID, conversation_id: UUID, summary: str | None
    ) -> Conversation | None:
        """Complete it; return it as it is now."""

    async def archive(self, tenant_id: UUID, conversation_id: UUID) -> Conversation | None:
        """Put it away; return it as it is now."""

    async def set_deleted(
        self, tenant_id: UUID, conversation_id: UUID, *, deleted: bool
    ) -> Conversation | None:
        """Hide or show it; return it as it is now."""


class OwnerStore(Protocol):
    """Where the owners of conversations are looked up."""

    async def owners(self, tenant_id: UUID, conversation_ids: Collection[UUID]) -> list[Owner]:
        """Return the owners of those that exist, deleted ones included."""


class TenantStore(Protocol):
    """The registry of tenants, agents and keys."""

    async def create(self, tenant_id: UUID, display_name: str) -> Tenant:
        """Insert a tenant."""

    async def get(self, tenant_id: UUID) -> Tenant:
        """Raises ResourceNotFoundError."""

    async def page(self, *, cursor: PageCursor, limit: int) -> list[Tenant]:
        """Return one page of all tenants, oldest first."""

    async def create_agent(self, tenant_id: UUID, agent: Agent) -> Agent:
        """Raises ResourceAlreadyExistsError."""

    async def get_agent(self, tenant_id: UUID, agent_id: UUID) -> Agent:
        """Raises ResourceNotFoundError."""

    async def page_agents(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[Agent]:
        """Return one page, oldest first."""

    async def create_key(
        self,
        tenant_id: UUID,
        *,
        api_key_id: UUID,
        key_hash: bytes,
        display_name: str,
        scopes: frozenset[Scope],
        expires_at: datetime | None,
    ) -> ApiKey:
        """Insert a key."""

    async def find_key(self, tenant_id: UUID, key_hash: bytes) -> ApiKey | None:
        """Return the key with this hash, valid or not."""

    async def page_keys(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[ApiKey]:
        """Return one page, oldest first."""

    async def revoke_key(self, tenant_id: UUID, api_key_id: UUID) -> ApiKey:
        """Raises ResourceNotFoundError."""


class Outbox(Protocol):
    """Which rows the mirror still lacks, and the chunks that go with them."""

    async def claim(self, owner: str, *, limit: int, lease: timedelta) -> list[OutboxEntry]:
        """Lease at most `limit` entries, those that wait longest first."""

    async def release(self, owner: str) -> int:
        """Give back every lease of this owner; return how many."""

    async def totals(self) -> OutboxTotals:
        """Return the backlog over all tenants."""

    async def backlog(
        self,
        tenant_id: UUID,
        *,
        conversation_ids: Sequence[UUID] = (),
        enqueued_until: datetime | None = None,
    ) -> Backlog:
        """Return the backlog of a tenant, or of some conversations up to a moment."""

    async def count_chunks(self, tenant_id: UUID) -> int:
        """Return the number of chunks of a tenant."""

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through (chunk_id, event_id), ordered by chunk_id."""

    async def get_indexable(
        self, tenant_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, IndexableEvent]:
        """Return the events as they are now, by id; erased ones are missing."""

    async def is_conversation_deleted(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Whether it is deleted or does not exist."""

    async def enqueue_conversation_events(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Have every event of a conversation mirrored again."""

    async def enqueue_tenant(self, tenant_id: UUID) -> int:
        """Have every conversation of a tenant mirrored again; return how many."""

    async def save_chunks(
        self, tenant_id: UUID, event_ids: Sequence[UUID], chunks: Sequence[ChunkRow]
    ) -> None:
        """Make these the only chunks of these events."""

    async def acknowledge(self, owner: str, entries: Sequence[OutboxEntry]) -> None:
        """Remove what is done, of one tenant; have lost leases mirrored again."""

    async def fail(self, owner: str, entries: Sequence[OutboxEntry], error: str) -> None:
        """Pause entries of one tenant after a failure; park those that failed too often."""
