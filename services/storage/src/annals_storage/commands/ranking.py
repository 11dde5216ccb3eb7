"""Ranks what the engine finds: by its own scores, then the best of it by late interaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from annals_storage.commands.asked_times import AskedTimes
from annals_storage.commands.engine_first import EngineFirst
from annals_storage.commands.query_embedding import QueryEmbeddings
from annals_storage.commands.search_parameters import TenantParameters
from annals_storage.commands.word_search import WordSearch
from annals_storage.domain.asked_times import Asked
from annals_storage.domain.event_search import Search, SearchMode
from annals_storage.domain.fusion import Neighbors, Ranking, first_weights
from annals_storage.domain.hit_groups import Ranked, has_groups, to_rank
from annals_storage.domain.late_interaction import max_similarities
from annals_storage.domain.rescoring import Comparison, Found, Rescored, compared, head_of, rescored
from annals_storage.domain.search import Candidate, DenseVector, SparseVector, VectorQuery
from annals_storage.domain.search_parameters import MAX_CANDIDATES, SearchParameters
from annals_storage.ports.embedding import SparseEncoder
from annals_storage.ports.search import RescoringStore
from annals_storage.ports.vectors import VectorIndex

MORE_CANDIDATES = 4
"""Times as many are asked for next."""
INLINE_TOKEN_BYTES = 1024 * 1024
"""Tokens of the query times bytes of the texts that are compared on the event loop: half a
millisecond at 12 tokens a text, less than waking a thread takes on a busy machine."""


class RankEvents:
    """Asks the mirror for candidates and orders them."""

    def __init__(
        self,
        *,
        embeddings: QueryEmbeddings,
        sparse: SparseEncoder,
        vectors: VectorIndex,
        rescoring: RescoringStore,
        parameters: TenantParameters,
        engine_first: EngineFirst,
        words: WordSearch,
    ) -> None:
        self._embeddings, self._sparse, self._vectors = embeddings, sparse, vectors
        self._rescoring, self._parameters = rescoring, parameters
        self._asked_time = AskedTimes(rescoring)
        self._engine_first, self._words = engine_first, words

    async def __call__(self, search: Search, degraded: list[str]) -> Ranked:
        """Raises DependencyUnavailableError when PostgreSQL does not answer.

        When the engine does not, PostgreSQL finds the candidates by their words, which `degraded`
        then says. Raises EngineUnavailableError when there are no words to go by.
        """
        # The model first: the others are done while its threads compute.
        dense, parameters, asked = await asyncio.gather(
            self._meaning(search), self._parameters(search.scope.tenant_id), self._asked(search)
        )
        limit = parameters.candidates(search.limit)
        query = VectorQuery(search.scope, limit, dense=dense, bm25=self._terms(search))
        found = await self._found(search, query, degraded)
        ranking = await self._ranking(search, to_rank(found, search.group_by), asked, parameters)
        return Ranked(ranking, found, search.group_by, min_score=search.min_score)

    async def _found(self, search: Search, query: VectorQuery, degraded: list[str]) -> Found:
        return await self._engine_first(
            lambda: self._in_engine(search, query),
            lambda: self._words.events(query, search.query, search.language),
            expires_at=search.expires_at,
            degraded=degraded,
        )

    async def _in_engine(self, search: Search, query: VectorQuery) -> Found:
        """Ask for more where long texts or conversations leave too few hits of what was found."""
        found = await self._vectors.query(query)
        while (
            query.limit < MAX_CANDIDATES
            and any(len(chunks) >= query.limit for chunks in found.values())
            and not has_groups(found, search.group_by, search.limit)
        ):
            more = min(query.limit * MORE_CANDIDATES, MAX_CANDIDATES)
            query = replace(query, limit=more)
            found = await self._vectors.query(query)
        return found

    async def _asked(self, search: Search) -> Asked | None:
        return await self._asked_time(search) if search.mode is SearchMode.HYBRID else None

    async def _ranking(
        self, search: Search, found: Found, asked: Asked | None, parameters: SearchParameters
    ) -> Ranking | Rescored:
        if search.mode is not SearchMode.HYBRID:
            return Ranking(found)
        first = Ranking(
            found,
            weights=first_weights(parameters),
            neighbors=Neighbors(parameters.neighbor_shares),
        )
        if not first.events:
            return first
        depth = parameters.depth(search.limit)
        head = head_of(first, found, depth)
        comparison = await self._comparison(search, head, asked)
        return rescored(first, head, depth, comparison, parameters)

    async def _comparison(self, search: Search, head: Found, asked: Asked | None) -> Comparison:
        events = {chunk.chunk_id: chunk.event_id for own in head.values() for chunk in own}
        known = await self._rescoring.get_candidates(search.scope.tenant_id, list(events))
        return compared(
            ((events[chunk_id], candidate) for chunk_id, candidate in known.items()),
            query=search.query,
            asked=asked,
            similarities=await self._similarities(search.query, known),
        )

    async def _similarities(
        self, query: str, candidates: Mapping[UUID, Candidate]
    ) -> dict[UUID, float]:
        """Return MaxSim by chunk id, of chunks whose tokens are kept."""
        signs = {key: c.token_signs for key, c in candidates.items() if c.token_signs is not None}
        tokens = (await self._embeddings.get(query)).tokens
        if not signs or not len(tokens):
            return {}
        texts = list(signs.values())
        if len(tokens) * sum(map(len, texts)) <= INLINE_TOKEN_BYTES:
            scores = max_similarities(tokens, texts)
        else:
            scores = await asyncio.to_thread(max_similarities, tokens, texts)
        return dict(zip(signs, scores.tolist(), strict=True))

    async def _meaning(self, search: Search) -> DenseVector | None:
        if search.mode is SearchMode.LEXICAL:
            return None
        if search.vector is not None:
            return search.vector
        return (await self._embeddings.get(search.query)).dense

    def _terms(self, search: Search) -> SparseVector | None:
        if search.mode is SearchMode.DENSE:
            return None
        return self._sparse.encode_query(search.query, search.language)
