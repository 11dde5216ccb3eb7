"""Where generations of the mirror are kept, and what opens them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Protocol
from uuid import UUID

from annals_storage.domain.generations import (
    Build,
    BuildPosition,
    EmbeddingModel,
    MirrorGeneration,
)
from annals_storage.ports.embedding import Embedder
from annals_storage.ports.vectors import VectorIndex


class GenerationStore(Protocol):
    """The generations of an installation; at most one of each state.

    Every method raises DependencyUnavailableError without PostgreSQL.
    """

    async def all(self) -> list[MirrorGeneration]:
        """Return them by number."""

    async def first(self, model: EmbeddingModel) -> None:
        """Have the first one serve, unless there is one."""

    async def request(self, model: EmbeddingModel) -> MirrorGeneration | None:
        """Begin to build one; None unless the serving one is all there is."""

    async def cancel(self) -> MirrorGeneration | None:
        """Have the one that is being built removed; None when there is none."""

    async def keep(self, number: int, owner: str, lease: timedelta) -> bool:
        """Take or prolong the lease of who builds or removes it; return whether it is held."""

    async def release(self, owner: str) -> None:
        """Give back the leases of this owner."""

    async def build(self, number: int) -> Build | None:
        """Return what a build has come to; None when it is no longer being built."""

    async def count(self, number: int, sources: int, parked: int) -> None:
        """Note how much there is to do, and what was parked before."""

    async def advance(self, number: int, position: BuildPosition, done: int) -> None:
        """Note how far the walk is, and how many more sources were taken up."""

    async def walked(self, number: int) -> None:
        """Note the end of the walk."""

    async def note(self, number: int, problem: str) -> None:
        """Note what keeps it from serving."""

    async def serve(self, number: int) -> None:
        """Have it serve and the former one retire, at once. Nothing unless it is being built."""

    async def let_go(self, grace: timedelta) -> None:
        """Have the retired one removed when it has been that for so long."""

    async def forget(self, number: int) -> None:
        """Drop it, of which nothing is left."""


class SourceStore(Protocol):
    """Events and memories of a tenant as what a generation is built of."""

    async def count(self, tenant_id: UUID) -> int:
        """Return how many there are, deleted ones left out."""

    async def enqueue_page(self, tenant_id: UUID, *, after: UUID | None, limit: int) -> list[UUID]:
        """Have the next ones mirrored again; return their ids in order. Parked ones stay parked."""

    async def any_waiting(self, tenant_id: UUID, keys: Sequence[UUID]) -> bool:
        """Whether one of these waits to be mirrored and has not failed."""

    async def waiting(self, until: datetime) -> int:
        """Return how much of what was enqueued until then waits, of any tenant."""

    async def forget_chunks(
        self, tenant_id: UUID, model: str, *, after: UUID | None, limit: int
    ) -> UUID | None:
        """Drop a model's chunks among the next ones; return the last one looked at."""

    async def settle_memories(self, tenant_id: UUID, model: str) -> None:
        """Have the embeddings by this model be the only ones, where there are such."""


class MirrorEngines(Protocol):
    """Collections of the vector engine by generation."""

    async def open(self, generation: MirrorGeneration) -> VectorIndex:
        """Create or open its collection. Raises DependencyUnavailableError."""

    async def announce(self, generation: MirrorGeneration) -> None:
        """Tell other tools that it serves; safe to repeat."""

    async def remove(self, generation: MirrorGeneration) -> None:
        """Delete its collection, which is closed here; safe to repeat."""


class LoadedEmbedder(Embedder, Protocol):
    """A model that can be let go of."""

    def close(self) -> None:
        """Wait for what runs and end it."""


class Models(Protocol):
    """Embedding models."""

    async def load(self, model: EmbeddingModel) -> LoadedEmbedder:
        """Return it, ready. Raises what loading it raises."""
