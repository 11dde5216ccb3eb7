"""Ranks what the engine finds: by its own scores, then the best of it by late interaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from annals_storage.commands.engine_first import EngineFirst
from annals_storage.commands.query_embedding import QueryEmbeddings
from annals_storage.commands.word_search import WordSearch
from annals_storage.domain.event_search import Search, SearchMode
from annals_storage.domain.fusion import Ranking
from annals_storage.domain.late_interaction import max_similarities
from annals_storage.domain.rescoring import (
    RESCORED_EVENTS,
    Found,
    Rescored,
    head_of,
    is_named,
    rescored,
)
from annals_storage.domain.search import Candidate, VectorQuery
from annals_storage.ports.embedding import SparseEncoder
from annals_storage.ports.search import RescoringStore
from annals_storage.ports.vectors import VectorIndex

CANDIDATES_PER_HIT = 4
MIN_CANDIDATES = 200
MAX_CANDIDATES = 2_000


class RankEvents:
    """Asks the mirror for candidates and orders them."""

    def __init__(
        self,
        *,
        embeddings: QueryEmbeddings,
        sparse: SparseEncoder,
        vectors: VectorIndex,
        rescoring: RescoringStore,
        engine_first: EngineFirst,
        words: WordSearch,
    ) -> None:
        self._embeddings, self._sparse, self._vectors = embeddings, sparse, vectors
        self._rescoring = rescoring
        self._engine_first, self._words = engine_first, words

    async def __call__(self, search: Search, degraded: list[str]) -> Ranking | Rescored:
        """Raises DependencyUnavailableError when PostgreSQL does not answer.

        When the engine does not, PostgreSQL finds the candidates, which `degraded` then says.
        """
        query = await self._vector_query(search)
        found = await self._engine_first(
            lambda: self._vectors.query(query),
            lambda: self._words.events(query, search.query),
            expires_at=search.expires_at,
            degraded=degraded,
        )
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
