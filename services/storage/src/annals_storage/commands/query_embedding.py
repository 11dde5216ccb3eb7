"""Embeds queries, with a memory of recent ones."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from annals_storage.domain.late_interaction import TokenVectors
from annals_storage.domain.search import DenseVector
from annals_storage.ports.embedding import Embedder

CACHED_QUERIES = 1_024
"""At 384 dimensions and 10 telling tokens 17 MiB; with as many as there may be, 100 MiB."""


class QueryEmbedding(NamedTuple):
    """What a query means: as a whole, shape (dimensions,), and token by token."""

    dense: DenseVector
    tokens: TokenVectors


class QueryEmbeddings:
    """A bounded cache in front of the model. Vectors of a text never change."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._cache: OrderedDict[str, QueryEmbedding] = OrderedDict()

    async def get(self, query: str) -> QueryEmbedding:
        """Return the query's vectors."""
        found = self._cache.get(query)
        if found is None:
            vectors, tokens = await self._embedder.embed_tokens([query])
            found = QueryEmbedding(vectors[0], tokens[0])
            self._cache[query] = found
        self._cache.move_to_end(query)
        while len(self._cache) > CACHED_QUERIES:
            self._cache.popitem(last=False)
        return found
