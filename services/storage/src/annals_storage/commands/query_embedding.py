"""Embeds queries, with a memory of recent ones."""

from __future__ import annotations

from collections import OrderedDict

from annals_storage.domain.search import DenseVector
from annals_storage.ports.embedding import Embedder

CACHED_QUERIES = 4_096
"""At 384 dimensions, 6 MiB."""


class QueryEmbeddings:
    """A bounded cache in front of the model. Vectors of a text never change."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._cache: OrderedDict[str, DenseVector] = OrderedDict()

    async def get(self, query: str) -> DenseVector:
        """Return the query's vector, shape (dimensions,)."""
        vector = self._cache.get(query)
        if vector is None:
            vector = (await self._embedder.embed([query]))[0]
            self._cache[query] = vector
        self._cache.move_to_end(query)
        while len(self._cache) > CACHED_QUERIES:
            self._cache.popitem(last=False)
        return vector
