"""Where hits are read back, and searches logged."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID

from annals_storage.domain.search import (
    BranchPart,
    Candidate,
    DenseVector,
    FoundEvent,
    MemoryScope,
    ScoredChunk,
    SearchScope,
)
from annals_storage.domain.search_log import LoggedSearch, SearchLogQuery
from annals_storage.domain.search_parameters import Overrides


class RescoringStore(Protocol):
    """What candidates of a search are compared by, besides the engine's scores."""

    async def get_candidates(
        self, tenant_id: UUID, chunk_ids: Sequence[UUID]
    ) -> dict[UUID, Candidate]:
        """Return the candidates by chunk id; chunks that are gone are missing."""

    async def get_newest_time(
        self, tenant_id: UUID, conversation_ids: Sequence[UUID]
    ) -> datetime | None:
        """Return when the newest event of the conversations happened; None without events."""

    async def get_embeddings(
        self, tenant_id: UUID, chunk_ids: Sequence[UUID]
    ) -> dict[UUID, DenseVector]:
        """Return the vectors by chunk id, shape (dimensions,); chunks that are gone are missing."""


class SearchParameterStore(Protocol):
    """Where a tenant's own search parameters are kept."""

    async def get(self, tenant_id: UUID) -> Overrides:
        """Return the tenant's own values by name. Raises ResourceNotFoundError."""

    async def change(self, tenant_id: UUID, values: Overrides) -> Overrides:
        """Set values by name, None: forget; return all. Raises ResourceNotFoundError."""


class LexicalStore(Protocol):
    """Where words are looked up while the vector engine does not answer.

    `terms` are of domain/lexical.py. The work is bounded however frequent they are.
    """

    async def find_chunks(
        self, scope: SearchScope, terms: Sequence[int], limit: int, embedding_model: str
    ) -> list[ScoredChunk]:
        """Return this model's chunks of the scope that have any of the terms, best first."""

    async def find_memories(
        self, scope: MemoryScope, terms: Sequence[int], limit: int, embedding_model: str
    ) -> dict[UUID, DenseVector]:
        """Return the best memories of the scope that have any of the terms and an embedding."""


class HitStore(Protocol):
    """Where hits of the mirror are read back."""

    async def get_hits(
        self, scope: SearchScope, chunks: Sequence[tuple[UUID, int]]
    ) -> dict[tuple[UUID, int], FoundEvent]:
        """Return the events of (event_id, chunk_index), by these, in view for the scope."""

    async def get_view(
        self, tenant_id: UUID, conversation_id: UUID, branch: int
    ) -> tuple[BranchPart, ...]:
        """Return the parts of a branch's view. Raises ResourceNotFoundError."""


class SearchLogStore(Protocol):
    """Where searches are logged."""

    async def write(self, tenant_id: UUID, searches: Sequence[LoggedSearch]) -> None:
        """Keep searches of one tenant."""

    async def page(self, tenant_id: UUID, query: SearchLogQuery) -> list[LoggedSearch]:
        """Return one page, newest first."""
