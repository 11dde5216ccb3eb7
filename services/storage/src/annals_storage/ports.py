"""What the use cases need from the outside world. `app` chooses who provides it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from annals_common.errors import AnnalsError
from annals_common.principal import Actor, Scope
from annals_storage.domain.appending import Append, AppendResult
from annals_storage.domain.branches import Branch, NewBranch
from annals_storage.domain.changing import (
    EditedEvent,
    EventEdit,
    HistoryPage,
    HistoryQuery,
    StoredTurn,
    TurnStore,
)
from annals_storage.domain.conversations import (
    Conversation,
    ConversationChange,
    ConversationQuery,
    Creation,
    NewConversation,
)
from annals_storage.domain.events import Event, EventPage, EventQuery
from annals_storage.domain.forks import Fork, NewFork
from annals_storage.domain.indexing import (
    Backlog,
    ChunkRow,
    IndexableEvent,
    IndexableMemory,
    KnownChunks,
    MemoryEmbedding,
    OutboxEntry,
    OutboxKind,
    OutboxTotals,
)
from annals_storage.domain.memories import (
    FoundMemory,
    Memory,
    MemoryChange,
    MemoryQuery,
    NewMemory,
    StoreOutcome,
)
from annals_storage.domain.merging import Merge, Merged
from annals_storage.domain.ownership import EndUserMode, Owner
from annals_storage.domain.provider_logs import NewProviderLog, ProviderLog, ProviderLogPage
from annals_storage.domain.relationships import (
    Attachment,
    NewAttachment,
    NewRelationship,
    Relationship,
    RelationshipQuery,
)
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
from annals_storage.domain.search_log import LoggedSearch, SearchLogQuery
from annals_storage.domain.signing import NewSigningKey, SigningKey
from annals_storage.domain.tenancy import Agent, AgentChange, ApiKey, Credential, Tenant
from annals_storage.domain.threads import Thread, ThreadQuery, ToolCall
from annals_storage.domain.usage import ConversationSize, UsageQuery, UsageSum
from annals_storage.domain.watching import Arrivals, Mark, Part, Place

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


class Tokenizer(TokenCounter, Protocol):
    """Counts tokens and tells where they are."""

    def token_starts(self, text: str) -> list[int]:
        """Return, for each token of a text, the character it begins in."""


class AppendStore(Protocol):
    """Where appends become durable."""

    async def store(self, appends: Sequence[Append]) -> list[AppendResult | AnnalsError]:
        """Store appends of one tenant in one transaction; return an outcome for each."""


class TurnStorage(Protocol):
    """Where turns are stored."""

    async def store(self, turn: TurnStore) -> StoredTurn:
        """Store a turn, once for each idempotency key. Raises EventIsColdError."""


class EventChangeStore(Protocol):
    """Where stored events change, and their history is read."""

    async def edit(self, edit: EventEdit) -> EditedEvent:
        """Edit an event, once for each idempotency key. Raises EventIsColdError."""

    async def set_deleted(
        self, tenant_id: UUID, event_id: UUID, actor: Actor, *, deleted: bool
    ) -> Event:
        """Hide or show an event; return it as it is now. Raises EventIsColdError."""

    async def history(self, tenant_id: UUID, query: HistoryQuery) -> HistoryPage:
        """Return one page, newest first. Raises ResourceNotFoundError."""


class EventStore(Protocol):
    """Where events are read."""

    async def get(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> dict[UUID, Event]:
        """Return the visible ones by id."""

    async def get_by_seq(self, tenant_id: UUID, conversation_id: UUID, seq: int) -> Event | None:
        """Return the event at a position, if it is visible."""

    async def page(self, tenant_id: UUID, query: EventQuery) -> EventPage:
        """Return one page by seq. Raises ResourceNotFoundError without the conversation."""


class HitStore(Protocol):
    """Where hits of the mirror are read back."""

    async def get_hits(
        self, scope: SearchScope, chunks: Sequence[tuple[UUID, int]]
    ) -> dict[UUID, FoundEvent]:
        """Return, by event id, the events of (event_id, chunk_index) in view for the scope."""

    async def get_view(
        self, tenant_id: UUID, conversation_id: UUID, branch: int
    ) -> tuple[BranchPart, ...]:
        """Return the parts of a branch's view. Raises ResourceNotFoundError."""


class BranchStore(Protocol):
    """Where branches are kept."""

    async def open(self, tenant_id: UUID, new: NewBranch) -> Branch:
        """Return the branch opened by this call, or by the one it repeats.

        Raises ResourceNotFoundError, IdempotencyKeyReusedError, LimitExceededError.
        """

    async def select(self, tenant_id: UUID, conversation_id: UUID, branch: int) -> Branch:
        """Make a branch current. Raises ResourceNotFoundError."""

    async def page(
        self, tenant_id: UUID, conversation_id: UUID, *, after_branch: int, limit: int
    ) -> list[Branch]:
        """Return one page, oldest first; empty only without the conversation or behind its end."""


class MemoryStore(Protocol):
    """Where memories are kept. Those of deleted conversations are not visible."""

    async def store(self, tenant_id: UUID, new: NewMemory) -> StoreOutcome:
        """Insert, or find what an earlier call stored."""

    async def get(self, tenant_id: UUID, memory_ids: Sequence[UUID]) -> dict[UUID, FoundMemory]:
        """Return the visible ones by id."""

    async def page(self, tenant_id: UUID, query: MemoryQuery) -> list[Memory]:
        """Return one page, newest first. Raises ResourceNotFoundError without the conversation."""

    async def update(
        self, tenant_id: UUID, change: MemoryChange
    ) -> tuple[Memory | None, Memory | None]:
        """Apply the change; return (changed, current). `changed` is None when nothing matched."""

    async def delete(self, tenant_id: UUID, memory_id: UUID) -> bool:
        """Delete it for good; return whether there was one."""


class SearchLogStore(Protocol):
    """Where searches are logged."""

    async def write(self, tenant_id: UUID, searches: Sequence[LoggedSearch]) -> None:
        """Keep searches of one tenant."""

    async def page(self, tenant_id: UUID, query: SearchLogQuery) -> list[LoggedSearch]:
        """Return one page, newest first."""


class ThreadStore(Protocol):
    """Where events that belong together are read. Every method raises ResourceNotFoundError."""

    async def thread(self, tenant_id: UUID, query: ThreadQuery) -> Thread:
        """Return what an event answers and what answers it."""

    async def tool_call(self, tenant_id: UUID, event_id: UUID) -> ToolCall:
        """Return a call, by its event or its result's."""

    async def tool_call_by_id(
        self, tenant_id: UUID, conversation_id: UUID, tool_call_id: str
    ) -> ToolCall:
        """Return the newest call of this id on the current branch."""

    async def tool_calls(self, tenant_id: UUID, message_event_id: UUID) -> list[ToolCall]:
        """Return the calls a message triggered, by seq."""


class ForkStore(Protocol):
    """Where conversations are copied."""

    async def fork(self, tenant_id: UUID, new: NewFork) -> Fork:
        """Return the copy made by this call, or by the one it repeats.

        Raises ResourceNotFoundError, ResourceAlreadyExistsError, IdempotencyKeyReusedError,
        SourceIsColdError.
        """


class ConversationStore(Protocol):
    """Where conversations are kept."""

    async def create(self, tenant_id: UUID, new: NewConversation) -> Creation:
        """Insert, or find what has the id or the request_id."""

    async def get(self, tenant_id: UUID, conversation_id: UUID) -> Conversation | None:
        """Return it, deleted or not."""

    async def get_by_host_id(self, tenant_id: UUID, host_id: str) -> Conversation | None:
        """Return what the host application knows by this id, deleted or not."""

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

    async def get_by_host_id(self, tenant_id: UUID, host_id: str) -> Conversation | None:
        """Return what the host application knows by this id, deleted or not."""

    async def agent_mode(self, tenant_id: UUID, agent_id: UUID) -> EndUserMode | None:
        """Return what an agent accepts of end users; None when there is no such agent."""


class SessionMergeStore(Protocol):
    """Where sessions become users'."""

    async def merge(self, tenant_id: UUID, merge: Merge) -> Merged:
        """Move what is left of a session. Raises SessionAlreadyMergedError."""


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

    async def update_agent(self, tenant_id: UUID, change: AgentChange) -> Agent:
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
        agent_id: UUID | None = None,
    ) -> ApiKey:
        """Insert a key; with an agent a publishable one."""

    async def find_key(self, tenant_id: UUID, key_hash: bytes) -> Credential | None:
        """Return the key with this hash, valid or not."""

    async def page_keys(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[ApiKey]:
        """Return one page, oldest first."""

    async def revoke_key(self, tenant_id: UUID, api_key_id: UUID) -> ApiKey:
        """Raises ResourceNotFoundError."""


class RelationshipStore(Protocol):
    """Where relationships and attachments are kept."""

    async def create(self, tenant_id: UUID, new: NewRelationship) -> Relationship:
        """Insert it, or update score and metadata of what is there.

        Raises ResourceNotFoundError, RelationshipCycleError.
        """

    async def page(self, tenant_id: UUID, query: RelationshipQuery) -> list[Relationship]:
        """Return one page, newest first."""

    async def delete(self, tenant_id: UUID, relationship_id: UUID) -> None:
        """Raises ResourceNotFoundError."""

    async def attach(
        self, tenant_id: UUID, new: NewAttachment, *, event_id: UUID | None
    ) -> Attachment:
        """Raises ResourceNotFoundError, ResourceAlreadyExistsError."""

    async def get_attachment(self, tenant_id: UUID, attachment_id: UUID) -> Attachment:
        """Raises ResourceNotFoundError."""

    async def page_attachments(
        self, tenant_id: UUID, conversation_id: UUID, *, cursor: PageCursor, limit: int
    ) -> list[Attachment]:
        """Return one page, newest first."""


class UsageStore(Protocol):
    """Where usage is added up."""

    async def page(self, tenant_id: UUID, query: UsageQuery) -> list[UsageSum]:
        """Return one page, in the order of the dimensions asked for."""

    async def page_large(
        self, tenant_id: UUID, *, min_event_count: int, cursor: tuple[int, UUID] | None, limit: int
    ) -> list[ConversationSize]:
        """Return one page of the conversations of at least this size, largest first."""


class ProviderLogStore(Protocol):
    """Where raw requests and responses are kept for a while."""

    async def create(self, tenant_id: UUID, new: NewProviderLog) -> ProviderLog:
        """Raises ResourceNotFoundError, ProviderLogsDisabledError."""

    async def page(
        self, tenant_id: UUID, conversation_id: UUID, *, cursor: PageCursor, limit: int
    ) -> ProviderLogPage:
        """Return one page, newest first. Raises ResourceNotFoundError."""


class SigningKeyStore(Protocol):
    """Where the keys that sign user tokens are kept."""

    async def create(self, tenant_id: UUID, new: NewSigningKey) -> SigningKey:
        """Raises ResourceNotFoundError without the tenant."""

    async def find(self, tenant_id: UUID, signing_key_id: UUID) -> SigningKey | None:
        """Return the key, valid or not."""

    async def page(self, tenant_id: UUID, *, cursor: PageCursor, limit: int) -> list[SigningKey]:
        """Return one page, oldest first."""

    async def revoke(self, tenant_id: UUID, signing_key_id: UUID) -> SigningKey:
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
        kinds: Sequence[OutboxKind] = (),
        enqueued_until: datetime | None = None,
    ) -> Backlog:
        """Return the backlog of a tenant, or of some conversations or kinds, up to a moment."""

    async def count_chunks(self, tenant_id: UUID) -> int:
        """Return the number of chunks and memories of a tenant that belong into the mirror."""

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through (chunk_id, event_id) and twice each memory_id, ordered by the first."""

    async def get_indexable(
        self, tenant_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, IndexableEvent]:
        """Return the events as they are now, by id; unknown ones are missing."""

    async def get_known_chunks(
        self,
        tenant_id: UUID,
        *,
        event_ids: Sequence[UUID],
        content_hashes: Sequence[bytes],
        embedding_model: str,
    ) -> KnownChunks:
        """Return the chunks these events have, and embeddings of texts that have one."""

    async def get_indexable_memories(
        self, tenant_id: UUID, memory_ids: Sequence[UUID], embedding_model: str
    ) -> dict[UUID, IndexableMemory]:
        """Return the memories as they are now, by id; deleted ones are missing."""

    async def save_memory_embeddings(
        self, tenant_id: UUID, embeddings: Sequence[MemoryEmbedding], embedding_model: str
    ) -> None:
        """Keep these embeddings, save those of memories that have changed since."""

    async def is_conversation_deleted(self, tenant_id: UUID, conversation_id: UUID) -> bool:
        """Whether it is deleted or does not exist."""

    async def enqueue_conversation_events(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Have every event and memory of a conversation mirrored again."""

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
