"""What the use cases need from the outside world. `app` chooses who provides it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from annals_storage.domain.search import (
    ChunkPoint,
    ScoredChunk,
    SearchScope,
    Signal,
    SparseVector,
    VectorQuery,
)


class VectorIndex(Protocol):
    """A vector engine that mirrors chunks. Implementations are safe to use concurrently.

    Every method raises `DependencyUnavailableError("vector engine")` when the engine does
    not answer. Writes are durable against a crash of the process once they return.
    """

    async def open(self) -> None:
        """Create or open the collection; safe to repeat."""

    async def close(self) -> None:
        """Flush and let go of everything."""

    async def ping(self) -> None:
        """Answer, or raise."""

    async def upsert(self, points: Sequence[ChunkPoint]) -> None:
        """Insert or replace points by `chunk_id`."""

    async def delete_events(self, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        """Remove every chunk of these events."""

    async def delete_chunks(self, tenant_id: UUID, chunk_ids: Sequence[UUID]) -> None:
        """Remove these chunks."""

    async def delete_conversation(self, tenant_id: UUID, conversation_id: UUID) -> None:
        """Remove every chunk of this conversation."""

    async def query(self, query: VectorQuery) -> Mapping[Signal, list[ScoredChunk]]:
        """Return, per signal asked, at most `query.limit` chunks of the scope, best first."""

    async def count(self, scope: SearchScope) -> int:
        """Return the exact number of points in the scope."""

    async def list_chunks(
        self, tenant_id: UUID, *, after: UUID | None, limit: int
    ) -> list[tuple[UUID, UUID]]:
        """Page through (chunk_id, event_id) of a tenant, ordered by chunk_id."""


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
