"""Finds events by meaning and by words."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from uuid import UUID

from annals_common.errors import ColdStorageUnavailableError
from annals_storage.commands.freshness import FRESHNESS_TIMEOUT, Freshness
from annals_storage.commands.query_embedding import QueryEmbeddings
from annals_storage.domain.events import Event
from annals_storage.domain.fusion import Component, RankedEvent, Ranking
from annals_storage.domain.indexing import Backlog, OutboxKind
from annals_storage.domain.late_interaction import max_similarities
from annals_storage.domain.rescoring import (
    RESCORED_EVENTS,
    Found,
    Rescored,
    head_of,
    is_named,
    rescored,
)
from annals_storage.domain.search import Candidate, FoundEvent, SearchScope, VectorQuery
from annals_storage.ports.embedding import SparseEncoder
from annals_storage.ports.outbox import Outbox
from annals_storage.ports.search import HitStore, RescoringStore
from annals_storage.ports.vectors import VectorIndex

CANDIDATES_PER_HIT = 4
MIN_CANDIDATES = 200
MAX_CANDIDATES = 2_000
MIRRORED_KINDS = (OutboxKind.EVENT, OutboxKind.CONVERSATION)
COLD_STORAGE = "cold_storage"
"""Hits are missing whose words cannot be read now."""


class SearchMode(StrEnum):
    """Which signals count."""

    HYBRID = "hybrid"
    DENSE = "dense"
    LEXICAL = "lexical"


@dataclass(frozen=True, slots=True)
class Search:
    """A validated search. `freshness_seconds`: how long to wait for the mirror; None: not."""

    query: str
    scope: SearchScope
    mode: SearchMode = SearchMode.HYBRID
    limit: int = 10
    min_score: float = 0.0
    freshness_seconds: float | None = None
    explain: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """One event found. The chunk's offsets are into the event's own words, in characters."""

    event: Event
    score: float
    chunk_start: int
    chunk_end: int
    components: tuple[Component, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits, best first, and how complete they are."""

    hits: tuple[Hit, ...]
    backlog: Backlog
    degraded: tuple[str, ...]
    search_time_ms: float


class SearchEvents:
    """Asks the mirror, trusts PostgreSQL."""

    def __init__(
        self,
        *,
        embeddings: QueryEmbeddings,
        sparse: SparseEncoder,
        vectors: VectorIndex,
        hits: HitStore,
        hits_as_stored: HitStore,
        rescoring: RescoringStore,
        outbox: Outbox,
    ) -> None:
        """`hits_as_stored`: the same without the words of cold events, for when those are out."""
        self._embeddings, self._sparse, self._vectors = embeddings, sparse, vectors
        self._hits_as_stored, self._rescoring = hits_as_stored, rescoring
        self._hits, self._freshness = hits, Freshness(outbox, MIRRORED_KINDS)

    async def __call__(self, search: Search) -> SearchResult:
        """Raises DependencyUnavailableError when the engine or PostgreSQL does not answer.

        Raises ResourceNotFoundError when the branch asked for does not exist.
        """
        started = time.perf_counter()
        search = await self._with_view(search)
        tenant_id, rooms = search.scope.tenant_id, search.scope.conversation_ids
        fresh = await self._freshness.wait(tenant_id, rooms, search.freshness_seconds)
        degraded = [] if fresh else [FRESHNESS_TIMEOUT]
        ranking, backlog = await asyncio.gather(
            self._ranking(search), self._freshness.backlog(tenant_id, rooms)
        )
        hits = await self._read_back(search, ranking, degraded)
        return SearchResult(
            hits=hits,
            backlog=backlog,
            degraded=tuple(dict.fromkeys(degraded)),
            search_time_ms=(time.perf_counter() - started) * 1000,
        )

    async def _with_view(self, search: Search) -> Search:
        scope = search.scope
        if scope.branch is None:
            return search
        view = await self._hits.get_view(scope.tenant_id, scope.conversation_ids[0], scope.branch)
        return replace(search, scope=replace(scope, view=view))

    async def _ranking(self, search: Search) -> Ranking | Rescored:
        query = await self._vector_query(search)
        found = await self._vectors.query(query)
        first = Ranking(found)
        if search.mode is not SearchMode.HYBRID or not first.events:
            return first
        return await self._rescored(search, found, first)

    async def _rescored(self, search: Search, found: Found, first: Ranking) -> Rescored:
        depth = max(RESCORED_EVENTS, search.limit)
        head = head_of(first, found, depth)
        chunks = {chunk.chunk_id: chunk for chunks in head.values() for chunk in chunks}
        known = await self._rescoring.get_candidates(search.scope.tenant_id, list(chunks))
        named = [key for key, item in known.items() if is_named(item.author_name, search.query)]
        return rescored(
            first,
            head,
            depth,
            similarities=await self._similarities(search.query, known),
            named_events=frozenset(chunks[chunk_id].event_id for chunk_id in named),
        )

    async def _similarities(
        self, query: str, candidates: Mapping[UUID, Candidate]
    ) -> dict[UUID, float]:
        """Return MaxSim by chunk id, of chunks whose tokens are kept."""
        signs = {key: c.token_signs for key, c in candidates.items() if c.token_signs is not None}
        tokens = (await self._embeddings.get(query)).tokens
        if not signs or not len(tokens):
            return {}
        scores = await asyncio.to_thread(max_similarities, tokens, list(signs.values()))
        return dict(zip(signs, scores.tolist(), strict=True))

    async def _vector_query(self, search: Search) -> VectorQuery:
        wanted = max(MIN_CANDIDATES, search.limit * CANDIDATES_PER_HIT)
        query = VectorQuery(search.scope, min(wanted, MAX_CANDIDATES))
        if search.mode is not SearchMode.LEXICAL:
            query = replace(query, dense=(await self._embeddings.get(search.query)).dense)
        if search.mode is not SearchMode.DENSE:
            query = replace(query, bm25=self._sparse.encode_query(search.query))
        return query

    async def _read_back(
        self, search: Search, ranking: Ranking | Rescored, degraded: list[str]
    ) -> tuple[Hit, ...]:
        """Walk down the ranking until enough hits stand the test of PostgreSQL."""
        # Without a threshold everything counts, opposite meanings (negative cosines) included.
        ranked = [e for e in ranking.events if not search.min_score or e.score >= search.min_score]
        hits: list[Hit] = []
        while ranked and len(hits) < search.limit:
            missing = search.limit - len(hits)
            batch, ranked = ranked[:missing], ranked[missing:]
            hits += await self._hits_of(search, ranking, batch, degraded)
        return tuple(hits)

    async def _hits_of(
        self,
        search: Search,
        ranking: Ranking | Rescored,
        batch: Sequence[RankedEvent],
        degraded: list[str],
    ) -> list[Hit]:
        wanted = [(ranked.event_id, ranked.chunk_index) for ranked in batch]
        found = await self._found(search.scope, wanted, degraded)
        explain = ranking.explain if search.explain else _unexplained
        return [
            _hit(ranked, found[ranked.event_id], explain(ranked.event_id))
            for ranked in batch
            if ranked.event_id in found and _still_in(search.scope, found[ranked.event_id])
        ]

    async def _found(
        self, scope: SearchScope, wanted: list[tuple[UUID, int]], degraded: list[str]
    ) -> Mapping[UUID, FoundEvent]:
        try:
            return await self._hits.get_hits(scope, wanted)
        except ColdStorageUnavailableError:
            degraded.append(COLD_STORAGE)
        found = await self._hits_as_stored.get_hits(scope, wanted)
        return {key: hit for key, hit in found.items() if hit.event.cold_segment_id is None}


def _unexplained(_event_id: UUID) -> tuple[Component, ...]:
    return ()


def _hit(ranked: RankedEvent, found: FoundEvent, components: tuple[Component, ...]) -> Hit:
    shift = len(found.event.body.label())
    return Hit(
        event=found.event,
        score=ranked.score,
        chunk_start=max(0, found.chunk_start - shift),
        chunk_end=max(0, found.chunk_end - shift),
        components=components,
    )


def _still_in(scope: SearchScope, found: FoundEvent) -> bool:
    """Whether the event, as it is now, is what was asked for; the mirror may be behind."""
    event = found.event
    memberships = (
        (scope.conversation_ids, event.conversation_id),
        (scope.agent_ids, found.agent_id),
        (scope.types, event.body.type),
        (scope.roles, event.body.role),
        (scope.tool_names, event.body.tool_name),
    )
    return (
        all(not allowed or value in allowed for allowed, value in memberships)
        and scope.user_id in (None, found.user_id)
        and scope.session_id in (None, found.session_id)
        and event.event_id not in scope.exclude_event_ids
        and (scope.start_time is None or event.event_time >= scope.start_time)
        and (scope.end_time is None or event.event_time < scope.end_time)
    )
