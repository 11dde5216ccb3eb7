"""Ranks what the engine finds: by its own scores, then the best of it by late interaction."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

from annals_storage.commands.asked_times import AskedTimes
from annals_storage.commands.query_embedding import QueryEmbeddings
from annals_storage.commands.search_parameters import TenantParameters
from annals_storage.domain.asked_times import Asked
from annals_storage.domain.event_search import Search, SearchMode
from annals_storage.domain.fusion import Neighbors, Ranking, first_weights
from annals_storage.domain.late_interaction import max_similarities
from annals_storage.domain.rescoring import Comparison, Found, Rescored, compared, head_of, rescored
from annals_storage.domain.search import Candidate, VectorQuery
from annals_storage.domain.search_parameters import SearchParameters
from annals_storage.ports.embedding import SparseEncoder
from annals_storage.ports.search import RescoringStore
from annals_storage.ports.vectors import VectorIndex


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
    ) -> None:
        self._embeddings, self._sparse, self._vectors = embeddings, sparse, vectors
        self._rescoring, self._parameters = rescoring, parameters
        self._asked_time = AskedTimes(rescoring)

    async def __call__(self, search: Search) -> Ranking | Rescored:
        """Raises DependencyUnavailableError when the engine or PostgreSQL does not answer."""
        parameters = await self._parameters(search.scope.tenant_id)
        if search.mode is not SearchMode.HYBRID:
            return Ranking(await self._found(search, parameters))
        found, asked = await asyncio.gather(
            self._found(search, parameters), self._asked_time(search)
        )
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

    async def _found(self, search: Search, parameters: SearchParameters) -> Found:
        return await self._vectors.query(await self._vector_query(search, parameters))

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
        scores = await asyncio.to_thread(max_similarities, tokens, list(signs.values()))
        return dict(zip(signs, scores.tolist(), strict=True))

    async def _vector_query(self, search: Search, parameters: SearchParameters) -> VectorQuery:
        query = VectorQuery(search.scope, parameters.candidates(search.limit))
        if search.mode is not SearchMode.LEXICAL:
            query = replace(query, dense=(await self._embeddings.get(search.query)).dense)
        if search.mode is not SearchMode.DENSE:
            query = replace(query, bm25=self._sparse.encode_query(search.query))
        return query
