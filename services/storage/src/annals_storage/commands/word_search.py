"""Answers from PostgreSQL what the vector engine would be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import numpy as np

from annals_common.errors import EngineUnavailableError
from annals_storage.domain.lexical import query_terms
from annals_storage.domain.search import (
    DenseVector,
    MemoryScope,
    ScoredChunk,
    ScoredMemory,
    Signal,
    VectorQuery,
)
from annals_storage.ports.embedding import SparseEncoder
from annals_storage.ports.search import LexicalStore, RescoringStore


class WordSearch:
    """Finds by words alone. What is found is scored by every signal that was asked for.

    So cosines are cosines here too, and thresholds mean the same; only what shares no word with
    the query is missing.
    """

    def __init__(
        self, lexical: LexicalStore, rescoring: RescoringStore, *, sparse: SparseEncoder, model: str
    ) -> None:
        """`model`: the name under which the embeddings are kept that queries compare with."""
        self._lexical, self._rescoring = lexical, rescoring
        self._sparse, self._model = sparse, model

    async def events(
        self, query: VectorQuery, text: str, language: str | None = None
    ) -> Mapping[Signal, Sequence[ScoredChunk]]:
        """Return, per signal asked, the same chunks, best first.

        Raises EngineUnavailableError without a text: there is nothing to go by.
        """
        if not text:
            raise EngineUnavailableError
        scope = query.scope
        words = query.bm25 or self._sparse.encode_query(text, language)
        terms = query_terms(scope.tenant_id, words)
        chunks = (
            await self._lexical.find_chunks(scope, terms, query.limit, self._model) if terms else []
        )
        found: dict[Signal, Sequence[ScoredChunk]] = {}
        if query.dense is not None:
            found[Signal.DENSE] = await self._by_meaning(scope.tenant_id, chunks, query.dense)
        if query.bm25 is not None:
            found[Signal.BM25] = chunks
        return found

    async def memories(
        self, scope: MemoryScope, text: str, dense: DenseVector, limit: int
    ) -> list[ScoredMemory]:
        """Return memories that share a word with the text, nearest first.

        Raises EngineUnavailableError without a text: there is nothing to go by.
        """
        if not text:
            raise EngineUnavailableError
        terms = query_terms(scope.tenant_id, self._sparse.encode_query(text))
        if not terms:
            return []
        found = await self._lexical.find_memories(scope, terms, limit, self._model)
        cosines = _cosines(list(found.values()), dense)
        return sorted(map(ScoredMemory, found, cosines), key=_by_score, reverse=True)

    async def _by_meaning(
        self, tenant_id: UUID, chunks: Sequence[ScoredChunk], dense: DenseVector
    ) -> list[ScoredChunk]:
        ids = [chunk.chunk_id for chunk in chunks]
        kept = await self._rescoring.get_embeddings(tenant_id, ids) if ids else {}
        known = [chunk for chunk in chunks if chunk.chunk_id in kept]
        cosines = _cosines([kept[chunk.chunk_id] for chunk in known], dense)
        scored = [c._replace(score=score) for c, score in zip(known, cosines, strict=True)]
        return sorted(scored, key=_by_score, reverse=True)


def _cosines(vectors: Sequence[DenseVector], query: DenseVector) -> list[float]:
    """Return the cosine of each with a query; all are of length 1, or nearly: float16 rounds."""
    if not vectors:
        return []
    return [float(score) for score in np.stack(vectors) @ query]


def _by_score(scored: ScoredChunk | ScoredMemory) -> float:
    return scored.score
