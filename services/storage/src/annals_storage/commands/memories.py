"""Stores, changes and finds memories."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from annals_common.errors import (
    AnnalsError,
    IdempotencyKeyReusedError,
    ResourceAlreadyExistsError,
    ResourceNotFoundError,
    VersionMismatchError,
)
from annals_storage.commands.engine_first import EngineFirst
from annals_storage.commands.freshness import FRESHNESS_TIMEOUT, Freshness
from annals_storage.commands.query_embedding import QueryEmbeddings
from annals_storage.commands.word_search import WordSearch
from annals_storage.domain.indexing import OutboxKind
from annals_storage.domain.memories import (
    FoundMemory,
    Memory,
    MemoryChange,
    MemoryHit,
    MemorySearchResult,
    NewMemory,
    StoreVerdict,
)
from annals_storage.domain.search import DenseVector, MemoryScope, ScoredMemory
from annals_storage.ports.memories import MemoryStore
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.vectors import VectorIndex

CANDIDATES_PER_HIT = 2
MIN_CANDIDATES = 50
MIRRORED_KINDS = (OutboxKind.MEMORY, OutboxKind.CONVERSATION)


class StoreMemory:
    """Stores a memory; safe to retry."""

    def __init__(self, memories: MemoryStore) -> None:
        self._memories = memories

    async def __call__(self, tenant_id: UUID, new: NewMemory) -> tuple[Memory, bool]:
        """Return the memory as stored and whether an earlier call had stored it.

        Raises ResourceNotFoundError, ResourceAlreadyExistsError or IdempotencyKeyReusedError.
        """
        outcome = await self._memories.store(tenant_id, new)
        if outcome.memory is None:
            raise _refusal(outcome.verdict, new)
        return outcome.memory, outcome.verdict is StoreVerdict.REPLAYED


def _refusal(verdict: StoreVerdict, new: NewMemory) -> AnnalsError:
    match verdict:
        case StoreVerdict.IDEMPOTENCY_KEY_REUSED:
            return IdempotencyKeyReusedError(new.idempotency_key or "")
        case StoreVerdict.MEMORY_EXISTS:
            return ResourceAlreadyExistsError("memory", str(new.memory_id))
        case StoreVerdict.AGENT_NOT_FOUND:
            return ResourceNotFoundError("agent", str(new.agent_id))
        case _:
            return ResourceNotFoundError("conversation", str(new.conversation_id))


class UpdateMemory:
    """Changes named fields."""

    def __init__(self, memories: MemoryStore) -> None:
        self._memories = memories

    async def __call__(self, tenant_id: UUID, change: MemoryChange) -> Memory:
        """Raises ResourceNotFoundError or VersionMismatchError."""
        changed, current = await self._memories.update(tenant_id, change)
        if changed is not None:
            return changed
        if current is None:
            raise ResourceNotFoundError("memory", str(change.memory_id))
        raise VersionMismatchError(expected=change.expected_version or 0, actual=current.version)


@dataclass(frozen=True, slots=True)
class MemorySearch:
    """A validated search by a query's words or by its `embedding`, of length 1.

    `threshold`: the least cosine. `freshness_seconds`, `expires_at`: as of event_search.Search.
    """

    scope: MemoryScope
    query: str = ""
    embedding: DenseVector | None = None
    top_k: int = 5
    threshold: float = 0.5
    freshness_seconds: float | None = None
    expires_at: float | None = None


class SearchMemories:
    """Asks the mirror, trusts PostgreSQL, and does without the mirror if need be."""

    def __init__(
        self,
        *,
        embeddings: QueryEmbeddings,
        vectors: VectorIndex,
        memories: MemoryStore,
        outbox: Outbox,
        engine_first: EngineFirst,
        words: WordSearch,
    ) -> None:
        self._embeddings, self._vectors, self._memories = embeddings, vectors, memories
        self._engine_first, self._words = engine_first, words
        self._freshness = Freshness(outbox, MIRRORED_KINDS)

    async def __call__(self, search: MemorySearch) -> MemorySearchResult:
        """Raises DependencyUnavailableError when PostgreSQL does not answer.

        Raises EngineUnavailableError when the engine does not, and there are no words to go by.
        """
        started = time.perf_counter()
        tenant_id, rooms = search.scope.tenant_id, search.scope.conversation_ids
        fresh = await self._freshness.wait(tenant_id, rooms, search.freshness_seconds)
        degraded = [] if fresh else [FRESHNESS_TIMEOUT]
        nearest, backlog = await asyncio.gather(
            self._nearest(search, degraded), self._freshness.backlog(tenant_id, rooms)
        )
        return MemorySearchResult(
            hits=await self._read_back(search, nearest),
            backlog=backlog,
            degraded=tuple(degraded),
            search_time_ms=(time.perf_counter() - started) * 1000,
        )

    async def _nearest(self, search: MemorySearch, degraded: list[str]) -> list[ScoredMemory]:
        given = search.embedding
        vector = (await self._embeddings.get(search.query)).dense if given is None else given
        limit = max(MIN_CANDIDATES, search.top_k * CANDIDATES_PER_HIT)
        found = await self._engine_first(
            lambda: self._vectors.query_memories(search.scope, vector, limit),
            lambda: self._words.memories(search.scope, search.query, vector, limit),
            expires_at=search.expires_at,
            degraded=degraded,
        )
        return [memory for memory in found if memory.score >= search.threshold]

    async def _read_back(
        self, search: MemorySearch, nearest: Sequence[ScoredMemory]
    ) -> tuple[MemoryHit, ...]:
        """Walk down the ranking until enough hits stand the test of PostgreSQL."""
        hits: list[MemoryHit] = []
        while nearest and len(hits) < search.top_k:
            missing = search.top_k - len(hits)
            batch, nearest = nearest[:missing], nearest[missing:]
            ids = [scored.memory_id for scored in batch]
            found = await self._memories.get(search.scope.tenant_id, ids)
            hits += [
                MemoryHit(found[scored.memory_id].memory, min(scored.score, 1.0))
                for scored in batch
                if scored.memory_id in found and _still_in(search.scope, found[scored.memory_id])
            ]
        return tuple(hits)


def _still_in(scope: MemoryScope, found: FoundMemory) -> bool:
    """Whether the memory, as it is now, is what was asked for; the mirror may be behind."""
    return (
        (not scope.conversation_ids or found.memory.conversation_id in scope.conversation_ids)
        and scope.agent_id in (None, found.agent_id)
        and scope.user_id in (None, found.user_id)
        and scope.session_id in (None, found.session_id)
        and set(scope.tags) <= set(found.memory.tags)
    )
